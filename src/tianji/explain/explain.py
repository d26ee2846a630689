"""Why a run is as fast as it is, in a few sentences. Pure: a record of metrics and the plan.

The side of a run that works all the time sets its pace; the other side waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from tianji.config.plan import Prediction, RunPlan
from tianji.explain.gathering import explain_gathering
from tianji.explain.groups import gain_of_groups, groups_sentence, wait_for_each_other
from tianji.explain.words import (
    LIMIT,
    NOTHING_YET,
    Explanation,
    away_sentence,
    bottleneck_sentence,
    gain,
    parts_sentences,
    serial_gain,
    waits_sentence,
)
from tianji.observe.account import Account, Side, to_account
from tianji.observe.summary import RunStatus
from tianji.records import (
    NO_METRICS,
    CriticalPath,
    Metrics,
    Rates,
    SummaryFacts,
    without_open_round,
)
from tianji.wording import to_percent

WRONG = 0.15
"""A prediction that is off by more than this share was wrong."""
WAITS = {
    "grant": "for a grant",
    "parked": "while parked",
    "answers": "for the answers of the inference server",
    "replies": "for the reply of the learner or the buffer",
    "unrolls": "for unrolls",
    "late_unrolls": "for late unrolls",
    "saving": "for checkpoints",
    "others": "for other groups",
    "peers": "for newer states of other groups",
}
LIMITS: Mapping[str, str] = {
    "sampling": "the actors",
    "training": "the learner",
    "communication": "the buffer",
    "processors": "the number of cores",
}


def explain(record: Metrics, plan: RunPlan, engine: str) -> Explanation:
    """Explain what a record of metrics shows; `engine` is the run's."""
    account = to_account(record)
    if "gather" in record:
        return explain_gathering(record, record["gather"], account, engine)
    if account is None:
        return Explanation(None, (NOTHING_YET,))
    is_serial = plan.lag_target == 0 or engine == "inline"
    path = _critical_path(account, is_serial)
    if is_serial:
        best, waits = serial_gain(account, engine), WAITS
        sampling, training = to_percent(account.actors.busy), to_percent(account.learner.busy)
        first = f"Sampling ({sampling} of the time) and training ({training}) take turns."
    elif path == "groups":
        best, first, waits = gain_of_groups(account), groups_sentence(account), WAITS
    else:
        best, first = gain(account, path, plan), bottleneck_sentence(account, path)
        waits = wait_words(path)
    told = [
        first,
        waits_sentence(account, waits, engine),
        away_sentence(account, engine),
        parts_sentences(account, path),
        best,
        _prediction_sentence(account, plan.prediction),
    ]
    return Explanation(path, tuple(filter(None, told)), best)


def wait_words(path: CriticalPath | None) -> dict[str, str]:
    """Return what each wait is for, in words. Grants follow the learner where it sets the pace."""
    is_behind = path in ("learner", "buffer")
    return WAITS | ({"grant": "for the learner to catch up"} if is_behind else {})


def explain_status(status: RunStatus) -> Explanation:
    """Explain the whole of a run that has ended, else its last seconds."""
    summary = status.summary
    if summary is not None and summary["explanation"]:
        return Explanation(summary["critical_path"], tuple(summary["explanation"]))
    return explain(status.record or NO_METRICS, status.plan, status.config.engine)


def speed_facts(whole: Metrics, plan: RunPlan, engine: str) -> SummaryFacts:
    """Return what the summary says about the speed of a run that has ended."""
    found, prediction = explain(whole, plan, engine), plan.prediction
    facts: SummaryFacts = {
        "critical_path": found.critical_path,
        "explanation": list(found.sentences),
        "waited_s": whole["waited_s"],
        "device": plan.device,
        "inference": plan.inference,
        "gpu": whole["gpu"],
    }
    if "gather" in whole:
        facts["gather"] = without_open_round(whole["gather"])
    if prediction is not None:
        facts["predicted"] = prediction.model_dump()
        facts["prediction_error"] = prediction_error(prediction, whole["rates_per_s"])
    return facts


def prediction_error(prediction: Prediction, rates: Rates) -> dict[str, float]:
    """Return measured over predicted, less 1, of each of the three rates."""
    return {
        name: rates[name] / promised - 1
        for name in ("produced", "received", "trained")
        if (promised := getattr(prediction, name)) > 0
    }


def _critical_path(account: Account, is_serial: bool) -> CriticalPath:
    actors, learner = account.actors.busy, account.learner.busy
    if is_serial:
        return "actors" if actors > learner else _learner_or_buffer(account.learner)
    if min(actors, learner) >= LIMIT:
        return "both"
    if learner >= LIMIT:
        return _learner_or_buffer(account.learner)
    if actors >= LIMIT:
        return "actors"
    if account.server and account.server.busy >= LIMIT:
        return "inference"
    return "groups" if wait_for_each_other(account) else "neither"


def _learner_or_buffer(side: Side) -> CriticalPath:
    return "buffer" if side.parts.get("buffer", 0.0) > side.busy / 2 else "learner"


def _prediction_sentence(account: Account, prediction: Prediction | None) -> str:
    if prediction is None or prediction.produced <= 0:
        return ""
    promised, reached = prediction.produced, account.rates["produced"]
    error = prediction_error(prediction, account.rates)["produced"]
    if abs(error) <= WRONG:
        signed = f"{100 * error:+.0f} %"
        return (
            f"The plan predicted {promised:,.0f} steps/s; the run makes {reached:,.0f} ({signed})."
        )
    than = "faster" if error > 0 else "slower"
    return (
        f"The run is {to_percent(abs(error))} {than} than planned: {reached:,.0f} steps/s instead "
        f"of {promised:,.0f}. The plan expected {LIMITS[prediction.bottleneck]} to be the limit."
    )
