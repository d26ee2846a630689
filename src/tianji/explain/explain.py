"""Why a run is as fast as it is, in a few sentences. Pure: a record of metrics and the plan.

Whichever side of a run works all the time sets its pace; the other one waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tianji.config.plan import Prediction, RunPlan
from tianji.display.numbers import to_percent
from tianji.explain.account import Account, Side, to_account
from tianji.explain.gains import (
    gain_of_actors,
    gain_of_both,
    gain_of_learner,
    gain_of_neither,
    serial_gain,
)

CriticalPath: TypeAlias = Literal["actors", "learner", "buffer", "both", "neither"]

LIMIT = 0.85
"""Whoever works this share of the time sets the pace; the rest is hand-over and noise."""
WRONG = 0.15
"""A prediction that is further off than this was wrong."""
WORTH_TELLING = 0.01
"""Shares of time below it are left out."""
NOTHING_YET = "Nothing to explain yet: no work has been seen."

_WAITS = {
    "grant": "for a grant",
    "parked": "parked",
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


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explanation("learner", sentences=("The learner is ...", ...), gain="What gains most: ...")"""

    critical_path: CriticalPath | None
    """The role that sets the pace; `both` work all the time, `neither` does always."""
    sentences: tuple[str, ...]
    """The first names the critical path."""
    gain: str = ""
    """Which of the sentences says what change gains most."""


def explain(record: Mapping[str, Any], plan: RunPlan, engine: str) -> Explanation:
    """Explain what a record of metrics shows; `engine` is the run's."""
    account = to_account(record)
    if account is None:
        return Explanation(None, (NOTHING_YET,))
    is_serial = plan.lag_target == 0 or engine == "inline"
    path = _critical_path(account, is_serial)
    gain = serial_gain(account, engine) if is_serial else _gain(account, path, plan)
    told = [
        _serial_sentence(account) if is_serial else _path_sentence(account, path),
        _waits_sentence(account, path, is_serial),
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
        verb = "is" if account.num_actors == 1 else "are"
        return f"The {who} {verb} the critical path: {actors} busy; the learner {learner}."
    if path == "both":
        return f"Both sides are the critical path: learner {learner} busy, {who} {actors}."
    if path == "neither":
        is_told = account.lacks_cores and account.usable_cores
        cores = f" (they share {account.usable_cores} cores)" if is_told else ""
        return f"Neither side is always the limit: learner {learner} busy, {who} {actors}{cores}."
    return f"The {path} is the critical path: {learner} busy; the {who} {actors}."


def _waits_sentence(account: Account, path: CriticalPath, is_serial: bool) -> str:
    behind = "" if is_serial or path not in ("learner", "buffer") else " (the learner is behind)"
    each = "the actor" if account.num_actors == 1 else "each actor"
    told = [
        *_waits(each, account.actors, account.span_s, {"grant": behind}),
        *_waits("the learner", account.learner, account.span_s, {}),
    ]
    nobody = f"nobody waited for more than {to_percent(WORTH_TELLING)} of the time"
    return f"In {_seconds(account.span_s)}, {'; '.join(told) or nobody}."


def _waits(who: str, side: Side, span_s: float, reasons: Mapping[str, str]) -> list[str]:
    """Lack of a core is told apart: it comes at work and on waking up, on top of the rest."""
    waits = _listed([
        f"{_seconds(share * span_s)} {_WAITS[cause]}{reasons.get(cause, '')}"
        for cause, share in sorted(side.waits.items(), key=lambda wait: -wait[1])
        if share >= WORTH_TELLING and cause in _WAITS
    ])  # fmt: skip
    lacked = f"lacked a core for {_seconds(side.no_core * span_s)}"
    told = [f"waited {waits}"] if waits else []
    told += [lacked] if side.no_core >= WORTH_TELLING else []
    return [f"{who} {' and '.join(told)}"] if told else []


def _parts_sentence(account: Account, path: CriticalPath) -> str:
    actors, learner = _parts(account.actors), _parts(account.learner)
    if path == "actors":
        return f"Work of the actors: {actors}."
    if path in ("both", "neither"):
        return f"Work of the actors: {actors}; of the learner: {learner}."
    return f"Work of the learner: {learner}."


def _parts(side: Side) -> str:
    whole = side.busy or 1.0
    shares = sorted(((share / whole, name) for name, share in side.parts.items()), reverse=True)
    told = [(to_percent(share), name) for share, name in shares if share >= WORTH_TELLING]
    return _listed([f"{name} {share}" for share, name in told])


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
    signed = f"{100 * error:+.0f} %"
    if abs(error) <= WRONG:
        return f"The plan promised {promised:,.0f} steps/s; {reached:,.0f} were reached ({signed})."
    return (
        f"The plan was wrong: it promised {promised:,.0f} steps/s, with "
        f"{_EXPECTED[prediction.bottleneck]} as the limit, and {reached:,.0f} were reached "
        f"({signed})."
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 99.95 else f"{seconds:,.0f} s"


def _listed(words: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
