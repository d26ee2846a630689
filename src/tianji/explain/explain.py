"""Why a run is as fast as it is, in a few sentences. Pure: a record of metrics and the plan.

Whichever side of a run works all the time sets its pace; the other one waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tianji.config.plan import Prediction, RunPlan
from tianji.explain.account import Account, Side, to_account
from tianji.explain.gains import (
    gain_of_actors,
    gain_of_both,
    gain_of_learner,
    gain_of_neither,
    serial_gain,
)
from tianji.explain.gathering import explain_gathering
from tianji.explain.interface import LIMIT, NOTHING_YET, CriticalPath, Explanation
from tianji.explain.words import actors_parts_sentence, parts_in_words, waits_sentence
from tianji.wording import to_percent

WRONG = 0.15
"""A prediction that is off by more than this share was wrong."""

_WAITS = {
    "grant": "for a grant",
    "parked": "while parked",
    "unrolls": "for unrolls",
    "late_unrolls": "for late unrolls",
    "saving": "for checkpoints",
}
_EXPECTED: Mapping[str, str] = {
    "sampling": "the actors",
    "training": "the learner",
    "communication": "the buffer",
    "processors": "the number of cores",
}


def explain(record: Mapping[str, Any], plan: RunPlan, engine: str) -> Explanation:
    """Explain what a record of metrics shows; `engine` is the run's."""
    account = to_account(record)
    if record.get("gather"):
        return explain_gathering(record, account, engine)
    if account is None:
        return Explanation(None, (NOTHING_YET,))
    is_serial = plan.lag_target == 0 or engine == "inline"
    path = _critical_path(account, is_serial)
    gain = serial_gain(account, engine) if is_serial else _gain(account, path, plan)
    told = [
        _serial_sentence(account) if is_serial else _path_sentence(account, path),
        _waits_sentence(account, path, is_serial, engine),
        _parts_sentence(account, path),
        gain,
        _prediction_sentence(account, plan.prediction),
    ]
    return Explanation(path, tuple(filter(None, told)), gain)


def prediction_error(prediction: Prediction, rates: Mapping[str, float]) -> dict[str, float]:
    """Measured over predicted, less 1, of each of the three rates."""
    promised = {name: getattr(prediction, name) for name in ("produced", "received", "trained")}
    known = {name: rate for name, rate in promised.items() if rate > 0 and name in rates}
    return {name: rates[name] / rate - 1 for name, rate in known.items()}


def _critical_path(account: Account, is_serial: bool) -> CriticalPath:
    actors, learner = account.actors.busy, account.learner.busy
    if is_serial:
        return "actors" if actors > learner else _learner_or_buffer(account.learner)
    if min(actors, learner) >= LIMIT:
        return "both"
    if learner >= LIMIT:
        return _learner_or_buffer(account.learner)
    return "actors" if actors >= LIMIT else "neither"


def _learner_or_buffer(side: Side) -> CriticalPath:
    return "buffer" if side.parts.get("buffer", 0.0) > side.busy / 2 else "learner"


def _serial_sentence(account: Account) -> str:
    sampling, training = to_percent(account.actors.busy), to_percent(account.learner.busy)
    return f"Sampling ({sampling} of the time) and training ({training}) take turns."


def _path_sentence(account: Account, path: CriticalPath) -> str:
    actors, learner = to_percent(account.actors.busy), to_percent(account.learner.busy)
    who = "actor" if account.num_actors == 1 else "actors"
    if path == "actors":
        are = (
            "is the bottleneck: it is"
            if account.num_actors == 1
            else "are the bottleneck: they are"
        )
        return f"The {who} {are} busy {actors} of the time, the learner {learner}."
    of_each = f"the learner is busy {learner} of the time, the {who} {actors}"
    if path == "both":
        return f"Both sides are at their limit: {of_each}."
    if path == "neither":
        is_told = account.lacks_cores and account.usable_cores
        cores = f" (they share {account.usable_cores} cores)" if is_told else ""
        return f"Neither side is the bottleneck all the time: {of_each}{cores}."
    return f"The {path} is the bottleneck: it is busy {learner} of the time, the {who} {actors}."


def _waits_sentence(account: Account, path: CriticalPath, is_serial: bool, engine: str) -> str:
    is_behind = not is_serial and path in ("learner", "buffer")
    behind = {"grant": "for the learner to catch up"} if is_behind else {}
    return waits_sentence(account, _WAITS | behind, engine)


def _parts_sentence(account: Account, path: CriticalPath) -> str:
    actors = actors_parts_sentence(account)
    learner = f"The learner spends its busy time on {parts_in_words(account.learner)}."
    if path == "actors":
        return actors
    return f"{actors} {learner}" if path in ("both", "neither") else learner


def _gain(account: Account, path: CriticalPath, plan: RunPlan) -> str:
    if path == "both":
        return gain_of_both()
    if path == "neither":
        return gain_of_neither(account)
    return (gain_of_actors if path == "actors" else gain_of_learner)(account, plan)


def _prediction_sentence(account: Account, prediction: Prediction | None) -> str:
    if prediction is None or "produced" not in account.rates:
        return ""
    promised, reached = prediction.produced, account.rates["produced"]
    error = prediction_error(prediction, account.rates).get("produced", 0.0)
    if abs(error) <= WRONG:
        signed = f"{100 * error:+.0f} %"
        return (
            f"The plan predicted {promised:,.0f} steps/s; the run makes {reached:,.0f} ({signed})."
        )
    than = "faster" if error > 0 else "slower"
    return (
        f"The run is {to_percent(abs(error))} {than} than planned: {reached:,.0f} steps/s instead "
        f"of {promised:,.0f}. The plan expected {_EXPECTED[prediction.bottleneck]} to be the limit."
    )
