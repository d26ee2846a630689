"""Why a run that gathers gradients is as fast as it is, in a few sentences. Pure.

Its actors do nearly all of the work, so that they are meant to be the limit. What matters is how
much of their work reaches a version, and who waits for whom.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tianji.display.rounds import MUCH_DROPPED, waited_for
from tianji.explain.account import Account, Side
from tianji.explain.gains import LEAST_GAIN, gain_of_part, to_times
from tianji.explain.interface import LIMIT, NOTHING_YET, CriticalPath, Explanation
from tianji.explain.words import WORTH_TELLING, actors_parts_sentence, waits_sentence
from tianji.observe.watch import is_actor
from tianji.wording import to_percent, to_value

LARGE = 0.5
"""Share of the time from which on messages are the limit."""
LEAST = 0.05
"""Shares are taken for no less where a gain is told: what would be above it is chance."""

_WAITS = {
    "grant": "for the next version",
    "parked": "while parked",
    "unrolls": "for gradients",
    "saving": "for checkpoints",
}
_ROUNDS = {
    "first": "A round takes the first {m} gradients, from any actor",
    "harmonic": "A round takes gradients from every actor until their harmonic count reaches {m}",
    "barrier": "A round takes one gradient from every actor",
    "every": "Every gradient makes a version",
}


def explain_gathering(
    record: Mapping[str, Any], account: Account | None, engine: str
) -> Explanation:
    """Explain a record whose group `gather` tells of rounds; account: where the time went."""
    gather = record["gather"]
    if account is None:
        rounds = _rounds_sentence(gather), _dropped_sentence(gather), _overdue_sentence(gather)
        told = [_waiting_sentence(record), *rounds]
        return Explanation(None, tuple(filter(None, told)) or (NOTHING_YET,))
    account = replace(account, actors=_renamed(account.actors))
    path = _critical_path(account, engine)
    gain = "" if engine == "inline" else _gain(record, account, path)
    if engine == "local" and not gain:
        gain = gain_of_part(account)
    parts = actors_parts_sentence(account)
    told = [
        _waiting_sentence(record),
        _path_sentence(record, account, path, engine),
        _rounds_sentence(gather),
        _dropped_sentence(gather),
        _overdue_sentence(gather),
        waits_sentence(account, _waits(gather, engine), engine),
        "" if engine == "virtual" else parts,
        gain,
    ]
    return Explanation(path, tuple(filter(None, told)), gain)


def _waits(gather: Mapping[str, Any], engine: str) -> Mapping[str, str]:
    """Real actors whose times are given wait until their gradients are due."""
    if gather.get("times", "none") == "none" or engine == "virtual":
        return _WAITS
    return {**_WAITS, "grant": "until gradients were due or for the next version"}


def _renamed(side: Side) -> Side:
    """What an actor does outside of its environments is more than inference here."""
    names = {"inference": "policy with gradients"}
    return replace(side, parts={names.get(name, name): s for name, s in side.parts.items()})


def _waiting_sentence(record: Mapping[str, Any]) -> str:
    gather = record["gather"]
    names = waited_for(gather)
    if not names:
        return ""
    at = f" for version {record['version']}" if "version" in record else ""  # not of a whole run
    open_s = f"{gather['open_s']:.0f} s"
    return f"The round is waiting for {names}: gradients{at} have been missing for {open_s}."


def _critical_path(account: Account, engine: str) -> CriticalPath:
    if account.learner.busy >= LIMIT:
        return "learner"
    return "actors" if engine == "inline" or account.actors.busy >= LIMIT else "neither"


def _path_sentence(
    record: Mapping[str, Any], account: Account, path: CriticalPath, engine: str
) -> str:
    actors, learner = to_percent(account.actors.busy), to_percent(account.learner.busy)
    if path == "learner":
        return (
            f"The learner is the bottleneck: it is busy {learner} of the time, the actors {actors}."
        )
    if engine == "inline":
        together = to_percent(min(1.0, account.num_actors * account.actors.busy))
        return (
            f"The actors take turns in one process and use {together} of the time, the learner "
            f"{learner}."
        )
    if path == "actors":
        return (
            f"The actors are the bottleneck, as intended: they are busy {actors} of the time, the "
            f"learner {learner}."
        )
    gather, (name, busiest) = record["gather"], _busiest(record)
    if (share := _share_of_messages(gather)) >= LARGE:
        return (
            f"Messages are the bottleneck: the sums of closed rounds are in transit "
            f"{to_percent(share)} of the time; the actors are busy {actors} of the time."
        )
    if busiest >= LIMIT and gather["rule"] == "barrier":
        included = "" if gather.get("network", "none") == "none" else " (messages included)"
        return (
            f"The slowest actor is the bottleneck: {name} is busy {to_percent(busiest)} of the "
            f"time{included}, the average actor {actors}, the learner {learner}."
        )
    return (
        f"Neither side is the bottleneck all the time: the actors are busy {actors} of the time, "
        f"the learner {learner}."
    )


def _share_of_messages(gather: Mapping[str, Any]) -> float:
    """Of the time, where sums are collected once a round is closed and take a given time."""
    share = (gather.get("closing_s") or 0.0) * (gather.get("rounds_per_s") or 0.0)
    return min(1.0, share)


def _busiest(record: Mapping[str, Any]) -> tuple[str, float]:
    shares = {name: s for name, s in record.get("busy_share", {}).items() if is_actor(name)}
    return max(shares.items(), key=lambda found: found[1], default=("", 0.0))


def _rounds_sentence(gather: Mapping[str, Any]) -> str:
    if not gather.get("gradients_per_s"):
        return ""
    sentence = _ROUNDS[gather["rule"]].format(m=gather["num_gradients"])
    rates = [f"{to_value(gather['gradients_per_s'])} gradients/s"]
    if gather["rule"] != "every":
        rates.insert(0, f"{to_value(gather['rounds_per_s'])} rounds/s")
    return f"{sentence}: {', '.join(rates)}{_shares(gather.get('counts') or [])}."


def _shares(counts: list[int]) -> str:
    """Who made how many of them."""
    total = sum(counts)
    if len(counts) < 2 or not total:
        return ""
    who, whom = counts.index(max(counts)), counts.index(min(counts))
    most, least = to_percent(counts[who] / total), to_percent(counts[whom] / total)
    if most == least:
        return f"; each actor made {most}"
    return f"; actor-{who} made {most} of them, actor-{whom} {least}"


def _overdue_sentence(gather: Mapping[str, Any]) -> str:
    """Given times that could not be kept are not what the run has had."""
    share = gather.get("overdue_share") or 0.0
    if share < WORTH_TELLING:
        return ""
    return (
        f"{to_percent(share)} of the gradients took longer than their given times: raise "
        "times.unit_s, or use fewer actors per core."
    )


def _dropped_sentence(gather: Mapping[str, Any]) -> str:
    if gather.get("rule") == "every" or not gather.get("rounds_per_s"):
        return ""
    share, steps = gather["discarded_share"], gather.get("discarded_step_share")
    # A gradient that had only just begun is dropped as any other, and costs next to nothing.
    if min(share, share if steps is None else steps) < WORTH_TELLING:
        return "Hardly any work was dropped when rounds closed."
    told = f"{to_percent(share)} of the gradients"
    if steps is not None:
        told += f" and {to_percent(steps)} of the environment steps"
    sentence = f"{told} were dropped when rounds closed."
    if gather["rule"] == "barrier":
        return sentence
    # As many are in work whenever a round is closed, however large it was.
    of, before = ("gradients", share) if steps is None else ("steps", steps)
    after = to_percent(before / (2.0 - before))
    return f"{sentence} With m = {2 * gather['num_gradients']}, about {after} of the {of} would be."


def _gain(record: Mapping[str, Any], account: Account, path: CriticalPath) -> str:
    """Of another rule or another m; nothing where those gain little."""
    gather = record["gather"]
    if names := waited_for(gather):
        return (
            f"Going on without {names} would help most (algorithm.absent_after_s), unless it comes "
            "back."
        )
    if path == "learner":
        return (
            "Larger rounds or larger gradients would help most: the learner would have less to do."
        )
    if gather["rule"] == "barrier" and path == "neither":
        return _gain_of_another_rule(record, account)
    return _gain_of_m(gather, account, path)


def _gain_of_another_rule(record: Mapping[str, Any], account: Account) -> str:
    """Messages, where they take time, are a part of being busy, and would be paid once a round: how
    much that gains does not follow from the shares."""
    more = _without_waiting(record, account)
    if more < LEAST_GAIN:
        return ""
    has_messages = record["gather"].get("network", "none") != "none"
    how_much = "" if has_messages else f" (up to {to_times(more)} as many gradients)"
    return (
        "Not waiting for the slowest actor would help most: use rennala-nigt if all actors have "
        f"the same task, else malenia-nigt{how_much}."
    )


def _without_waiting(record: Mapping[str, Any], account: Account) -> float:
    """How many gradients all would make in the time in which each makes one and waits: an actor
    that is busy for a fifth of it makes five. As far as there are cores for it."""
    shares = [s for name, s in record.get("busy_share", {}).items() if is_actor(name)]
    each = [1 / max(LEAST, share) for share in shares or [account.actors.busy]]
    more: float = sum(each) / len(each)
    on_core = account.actors.on_core
    if account.usable_cores is None or not on_core or not account.lacks_cores:
        return more
    return min(more, account.usable_cores / on_core)


def _gain_of_m(gather: Mapping[str, Any], account: Account, path: CriticalPath) -> str:
    if (messages := _share_of_messages(gather)) >= LARGE:
        more = to_times(1 / max(LEAST, 1.0 - messages))
        return f"A larger m would help most: fewer messages (up to {more} as many gradients)."
    dropped = gather.get("discarded_step_share") or 0.0
    if dropped >= MUCH_DROPPED:
        more = to_times(1 / max(LEAST, 1.0 - dropped))
        return f"A larger m would help most: less is dropped (up to {more} as many gradients)."
    waits = account.actors.waits.get("grant", 0.0) > 1.0 - LIMIT
    if path == "neither" and waits and gather.get("times", "none") == "none":
        return "A larger m would help most: the actors wait for the next version after each round."
    return ""
