"""What an explanation is, and its sentences about where the time of a run went. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tianji.observe.account import LEAST_S, Account, Side
from tianji.records import CriticalPath
from tianji.wording import listed, on_clock, to_percent, to_seconds

LIMIT = 0.85
"""A side that works this share of the time sets the pace; the rest is hand-over and noise."""
NOTHING_YET = "There is nothing to explain yet: no role has done any work."


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explanation("learner", sentences=("The learner is ...", ...), gain="Halving ...")"""

    critical_path: CriticalPath | None
    """None where no role has worked yet."""
    sentences: tuple[str, ...]
    """The first names the bottleneck."""
    gain: str = ""
    """The sentence that says which change would help most."""


PARTS = {
    "environment": "environment steps",
    "buffer": "the buffer",
    "saving": "checkpoints",
    "policy with gradients": "policy and gradients",
}
"""Names of parts on the screen where those of the metrics do not read well."""
WORTH_TELLING = 0.01
"""Shares of time below it are left out."""


def bottleneck_sentence(account: Account, path: CriticalPath) -> str:
    """Name the side that sets the pace, with the busy shares of both."""
    actors, learner = to_percent(account.actors.busy), to_percent(account.learner.busy)
    is_one = account.num_actors == 1
    who = "actor" if is_one else "actors"
    if path == "actors":
        are = "is the bottleneck: it is" if is_one else "are the bottleneck: they are"
        return f"The {who} {are} busy {actors} of the time, the learner {learner}."
    of_each = f"the learner is busy {learner} of the time, the {who} {actors}"
    if path == "both":
        return f"Both sides are at their limit: {of_each}."
    if path == "neither":
        is_told = account.lacks_cores and account.usable_cores
        cores = f" (they share {account.usable_cores} cores)" if is_told else ""
        return f"Neither side is the bottleneck all the time: {of_each}{cores}."
    return f"The {path} is the bottleneck: it is busy {learner} of the time, the {who} {actors}."


def waits_sentence(account: Account, words: Mapping[str, str], engine: str) -> str:
    """words: the words for each wait; waits that are not in it are left out."""
    each = "the actor" if account.num_actors == 1 else "each actor"
    told = [
        *_waits(each, account.actors, account.span_s, words),
        *_waits("the learner", account.learner, account.span_s, words),
    ]
    nobody = f"no role waited for more than {to_percent(WORTH_TELLING)} of the time"
    span = on_clock(to_seconds(account.span_s), engine)
    return f"In {span}, {'; '.join(told) or nobody}."


def _waits(who: str, side: Side, span_s: float, words: Mapping[str, str]) -> list[str]:
    """Time without a core is listed separately: it overlaps with work and with waking up."""
    waits = listed([
        f"{to_seconds(share * span_s)} {words[cause]}"
        for cause, share in sorted(side.waits.items(), key=lambda wait: -wait[1])
        if _is_worth_telling(share, span_s) and cause in words
    ])  # fmt: skip
    told = [f"waited {waits}"] if waits else []
    if _is_worth_telling(side.no_core, span_s):
        told.append(f"had no free core for {to_seconds(side.no_core * span_s)}")
    return [f"{who} {' and '.join(told)}"] if told else []


def _is_worth_telling(share: float, span_s: float) -> bool:
    """Over a short time span, even a large share may round to 0.0 s."""
    return share >= WORTH_TELLING and share * span_s >= LEAST_S


def parts_sentences(account: Account, path: CriticalPath) -> str:
    """Say what the busy time of the limiting side, or of both sides, consists of."""
    who = "actor spends its" if account.num_actors == 1 else "actors spend their"
    actors = f"The {who} busy time on {_parts(account.actors)}."
    learner = f"The learner spends its busy time on {_parts(account.learner)}."
    if path == "actors":
        return actors
    return f"{actors} {learner}" if path in ("both", "neither") else learner


def _parts(side: Side) -> str:
    """List the parts of a side's work, the largest first."""
    whole = side.worked or 1.0
    shares = sorted(((share / whole, name) for name, share in side.parts.items()), reverse=True)
    told = [(to_percent(share), name) for share, name in shares if share >= WORTH_TELLING]
    return listed([f"{PARTS.get(name, name)} ({share})" for share, name in told])
