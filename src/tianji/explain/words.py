"""What an explanation is, where the time of a run went, and what change would make it faster. Pure.

Both sides of a run hand each other work, so its pace is that of the slower one:

    time per version = max(sampling, training)         serial runs: sampling + training

A side that is busy for a share u of the time would need only that share if it never waited. A run
can become (busy share of the slower side) / (busy share of the faster side) times as fast before
the faster side is the limit. Every gain is bounded by that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tianji.config.plan import RunPlan
from tianji.observe.account import LEAST_S, Absence, Account, Side
from tianji.records import CriticalPath
from tianji.wording import counted, listed, on_clock, to_percent, to_seconds

LIMIT = 0.85
"""A side that works this share of the time sets the pace; the rest is hand-over and noise."""
NOTHING_YET = "There is nothing to explain yet: too little has been done."


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
    server = account.server and to_percent(account.server.busy)
    more = f", the inference server {server}" if server else ""
    if path == "actors":
        are = "is the bottleneck: it is" if is_one else "are the bottleneck: they are"
        return f"The {who} {are} busy {actors} of the time, the learner {learner}{more}."
    if path == "inference":
        return (
            f"The inference server is the bottleneck: it is busy {server} of the time, the {who} "
            f"{actors}, the learner {learner}."
        )
    of_each = f"the learner is busy {learner} of the time, the {who} {actors}{more}"
    if path == "both":
        return f"Both sides are at their limit: {of_each}."
    if path == "neither":
        is_told = account.lacks_cores and account.usable_cores
        cores = f" (they share {account.usable_cores} cores)" if is_told else ""
        return f"Neither side is the bottleneck all the time: {of_each}{cores}."
    return (
        f"The {path} is the bottleneck: it is busy {learner} of the time, the {who} {actors}{more}."
    )


def waits_sentence(account: Account, words: Mapping[str, str], engine: str) -> str:
    """words: the words for each wait; waits that are not in it are left out."""
    each = "the actor" if account.num_actors == 1 else "each actor"
    told = [
        *_waits(each, account.actors, account.span_s, words),
        *_waits("the learner", account.learner, account.span_s - account.away_s, words),
    ]
    nobody = f"no role waited for more than {to_percent(WORTH_TELLING)} of the time"
    span = on_clock(to_seconds(account.span_s), engine)
    return f"In {span}, {'; '.join(told) or nobody}."


def away_sentence(account: Account, engine: str) -> str:
    """Say for how long there was no learner, and no actor; empty where none was restarted."""
    told = []
    if account.away_s:
        away = on_clock(to_seconds(account.away_s), engine)
        told += [
            f"The learner was away for {away} while it was started again; shares leave that out."
        ]
    if account.absence and account.absence.share >= WORTH_TELLING:
        who = "The actor" if account.num_actors == 1 else "Each actor"
        away = on_clock(to_seconds(account.absence.share * account.span_s), engine)
        mean = "" if account.num_actors == 1 else " on average"
        told += [f"{who} was away for {away}{mean} while actors were started again."]
    return " ".join(told)


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
    parts = _parts(account.actors), _parts(account.learner)
    actors = f"The {who} busy time on {parts[0]}." if parts[0] else ""
    learner = f"The learner spends its busy time on {parts[1]}." if parts[1] else ""
    if path == "actors":
        return actors
    both = f"{actors} {learner}".strip()
    return both if path in ("both", "neither", "inference") else learner


def _parts(side: Side) -> str:
    """List the parts of a side's work, the largest first."""
    whole = side.worked or 1.0
    shares = sorted(((share / whole, name) for name, share in side.parts.items()), reverse=True)
    told = [(to_percent(share), name) for share, name in shares if share >= WORTH_TELLING]
    return listed([f"{PARTS.get(name, name)} ({share})" for share, name in told])


TIMES = {
    "environment": "the time of environment steps",
    "inference": "the inference time",
    "policy with gradients": "the time for policy and gradients",
    "updates": "the update time",
    "publishing": "the publishing time",
    "buffer": "the buffer's time",
    "saving": "the time for checkpoints",
}
"""What to halve, by the part of a side's work."""
_HALVE_EVALUATION = "Halving the time that the server takes to evaluate the network"
TAKEN = 0.5
"""Unused cores from which on other programs use them, while a side lacks a core."""
LEAST_GAIN = 1.05
"""A smaller factor would be rounded to no gain."""
LEAST_BUSY = 0.01
"""A smaller busy share sets no useful bound."""
LEAST_PART = 0.05
"""A smaller share in a denominator would give a gain that is noise."""


def serial_gain(account: Account, engine: str) -> str:
    """Say what sampling and training at the same time would gain."""
    actors, learner = account.actors.busy, account.learner.busy
    faster = (actors + learner) / max(actors, learner, LEAST_BUSY)
    how = "The local engine with max_lag 1" if engine == "inline" else "max_lag 1"
    return (
        f"{how} would help most: sampling and training would run at the same time (up to "
        f"{to_times(faster)} as fast where cores are free)."
    )


def gain(account: Account, path: CriticalPath, plan: RunPlan) -> str:
    """Say which change would help a run most whose actors and learner work at the same time."""
    if path == "both":
        return "More cores, or less work on both sides, would help most; one faster side would not."
    if path == "neither":
        return _gain_of_neither(account, plan)
    if path == "inference":
        return _gain_of_server(account)
    if path == "actors":
        return gain_of_actors(account) + _more_actors(account, plan)
    who = "the actor" if account.num_actors == 1 else "the actors"
    return _gain(account, account.learner, account.actors, who) + _more_threads(account, plan)


def gain_of_actors(account: Account) -> str:
    """Say which change would help the actors most, as far as the learner keeps up."""
    return _gain(account, account.actors, account.learner, "the learner")


def _gain_of_server(account: Account) -> str:
    """Halve the time of evaluations, as far as the other roles keep up."""
    assert account.server is not None, "it is the bottleneck"
    others = max(account.actors.busy, account.learner.busy, LEAST_BUSY)
    faster = to_times(min(2.0, account.server.busy / others))
    return f"{_HALVE_EVALUATION} would help most (up to {faster} as fast)."


def _gain_without_faults(absence: Absence) -> str:
    """Name what the actors were started again for: no other change would help before."""
    faults = {"restart": absence.restarts, "environment failure": absence.env_failures}
    told = listed([counted(count, what) for what, count in faults.items() if count])
    return f"Actors that do not fail would help most: the learner waited for new ones ({told})."


def _gain_of_neither(account: Account, plan: RunPlan) -> str:
    if account.absence and account.absence.share > 1 - LIMIT:
        return _gain_without_faults(account.absence)
    if account.lacks_cores:
        return f"{another_core(account)} would help most: both sides sometimes lack one."
    if account.actors.waits.get("answers", 0.0) > 1 - LIMIT:
        how = (
            "Inference by the actors themselves"
            if plan.device == "cpu"
            else "Another place of inference (`tianji plan` measures them)"
        )
        return f"{how} may help most: the actors wait for the answers of the server."
    if account.actors.waits.get("replies", 0.0) > 1 - LIMIT:
        return "A style whose actors do not wait for replies would help most."
    longer = "a longer queue (queue_size)" if plan.queue_size else "a higher max_lag"
    return f"More even work or {longer} would help most: the two sides wait for each other in turn."


def _gain(account: Account, slow: Side, fast: Side, who_is_next: str) -> str:
    """Halve the largest part of the slower side's work, as far as the faster side keeps up. Time
    without a core is no work: another core removes it at once."""
    room = _room(slow, fast)
    part = max(slow.parts, key=lambda name: slow.parts[name])
    if slow.no_core > slow.parts[part] / 2:
        taken = account.unused_cores
        what, faster = another_core(account), _with_cores(slow, taken if taken >= TAKEN else 1.0)
    else:
        what, faster = f"Halving {TIMES[part]}", 1 / (1 - slow.parts[part] / slow.worked / 2)
    bound = f"; then {who_is_next} would be the bottleneck" if room < faster else ""
    if min(room, faster) < LEAST_GAIN:
        return f"{what} would help most, but only a little{bound}."
    return f"{what} would help most (up to {to_times(min(room, faster))} as fast{bound})."


def another_core(account: Account) -> str:
    """Other programs use the cores that a run lacks and does not use itself."""
    if account.unused_cores < TAKEN:
        return "Another core"
    return f"Freeing the {account.unused_cores:.1f} cores that other programs use"


def _with_cores(side: Side, more: float) -> float:
    """Return the gain of more cores, until no process lacks one or all new ones are in use."""
    alone = 1 / max(LEAST_PART, 1 - side.no_core)
    if side.on_core is None:
        return alone
    return min(alone, 1 + more / max(side.on_core, LEAST_PART))


def _room(slow: Side, fast: Side) -> float:
    return slow.busy / max(fast.busy, LEAST_BUSY)


def _more_actors(account: Account, plan: RunPlan) -> str:
    """More actors help while cores are free, or where actors wait inside their environments. Those
    that all take turns on one thread do not: their emulators already step at the same time."""
    if 1 < plan.num_actors <= plan.actors_per_worker:
        return ""
    now, num_envs = plan.num_actors, plan.num_actors * plan.envs_per_actor
    more = next((m for m in range(now + 1, num_envs + 1) if num_envs % m == 0), None)
    if more is None or account.idle_cores < (more - now) * _core_share(account.actors):
        return ""
    faster = to_percent(min(more / now, _room(account.actors, account.learner)) - 1)
    return (
        f" {account.idle_cores:.1f} cores are idle: {more} actors could be up to {faster} faster."
    )


def _core_share(side: Side) -> float:
    """Return the share of its work that needs a core; the rest waits for a simulator or device."""
    return min(1.0, side.on_core / max(side.busy, LEAST_BUSY)) if side.on_core is not None else 1.0


def _more_threads(account: Account, plan: RunPlan) -> str:
    """A measured plan has already tried more threads."""
    if plan.source == "measured" or account.idle_cores < 1:
        return ""
    return (
        f" {account.idle_cores:.1f} cores are idle: `tianji plan` measures whether more learner "
        "threads help."
    )


def to_times(factor: float) -> str:
    return f"{factor:.1f} x" if factor < 9.95 else f"{factor:.0f} x"
