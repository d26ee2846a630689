"""Why a run that gathers gradients is as fast as it is, in a few sentences. Pure.

The actors do nearly all of the work, so they are meant to be the limit. What matters is how much of
their work reaches a version, and which role waits for which.
"""

from __future__ import annotations

from dataclasses import replace

from tianji.explain.rounds import MUCH_DROPPED, late_actors, round_takes
from tianji.explain.words import (
    LEAST_GAIN,
    LEAST_PART,
    LIMIT,
    NOTHING_YET,
    WORTH_TELLING,
    Explanation,
    away_sentence,
    bottleneck_sentence,
    gain_of_actors,
    parts_sentences,
    to_times,
    waits_sentence,
)
from tianji.observe.account import Account
from tianji.records import CriticalPath, Gathering, Metrics, roles_of
from tianji.wording import to_percent, to_value

LARGE = 0.5
"""Share of the time from which on messages are the limit."""
_WAITS = {
    "grant": "for the next version",
    "parked": "while parked",
    "unrolls": "for gradients",
    "saving": "for checkpoints",
}


def wait_words(rule: str) -> dict[str, str]:
    """Return what each wait is for, in words, in runs that gather gradients by this rule."""
    is_of_one = rule == "every"
    return _WAITS | ({"grant": "for gradients to be applied"} if is_of_one else {})


def explain_gathering(
    record: Metrics, gather: Gathering, account: Account | None, engine: str
) -> Explanation:
    """Explain a record of a run with rounds; account: where the time went."""
    rounds = [_rounds_sentence(gather), _dropped_sentence(gather), _overdue_sentence(gather)]
    waiting = _waiting_sentence(record["version"], gather)
    if account is None:
        return Explanation(None, tuple(filter(None, [waiting, *rounds])) or (NOTHING_YET,))
    # Outside of its environments, an actor does more than inference here.
    names = {"inference": "policy with gradients"}
    parts = {names.get(name, name): share for name, share in account.actors.parts.items()}
    account = replace(account, actors=replace(account.actors, parts=parts))
    path = _critical_path(account, engine)
    gain = "" if engine == "inline" else _gain(record, gather, account, path)
    if engine not in ("inline", "virtual") and not gain:
        gain = gain_of_actors(account)
    waits = wait_words(gather["rule"])
    if gather["times"] != "none" and engine != "virtual":
        waits["grant"] = "until gradients were due or for the next version"
    told = [
        waiting,
        _path_sentence(record, gather, account, path, engine),
        *rounds,
        waits_sentence(account, waits, engine),
        away_sentence(account, engine),
        "" if engine == "virtual" else parts_sentences(account, "actors"),
        gain,
    ]
    return Explanation(path, tuple(filter(None, told)), gain)


def _waiting_sentence(version: int, gather: Gathering) -> str:
    names = late_actors(gather)
    if not names:
        return ""
    return (
        f"The round is waiting for {names}: gradients for version {version} have been missing for "
        f"{gather.get('open_s', 0.0):.0f} s."
    )


def _critical_path(account: Account, engine: str) -> CriticalPath:
    if account.learner.busy >= LIMIT:
        return "learner"
    return "actors" if engine == "inline" or account.actors.busy >= LIMIT else "neither"


def _path_sentence(
    record: Metrics, gather: Gathering, account: Account, path: CriticalPath, engine: str
) -> str:
    actors, learner = to_percent(account.actors.busy), to_percent(account.learner.busy)
    if path == "actors" and engine == "inline":
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
    if path == "neither" and (share := _share_of_messages(gather)) >= LARGE:
        return (
            f"Messages are the bottleneck: the sums of closed rounds are in transit "
            f"{to_percent(share)} of the time; the actors are busy {actors} of the time."
        )
    shares = _busy_actors(record)
    name = max(shares, key=lambda role: shares[role], default="")
    if path == "neither" and gather["rule"] == "barrier" and shares.get(name, 0.0) >= LIMIT:
        included = "" if gather["network"] == "none" else " (messages included)"
        return (
            f"The slowest actor is the bottleneck: {name} is busy {to_percent(shares[name])} of "
            f"the time{included}, the average actor {actors}, the learner {learner}."
        )
    return bottleneck_sentence(account, path)


def _share_of_messages(gather: Gathering) -> float:
    """Return the share of the time in which the sums of closed rounds are collected."""
    return min(1.0, gather["closing_s"] * gather["rounds_per_s"])


def _busy_actors(record: Metrics) -> dict[str, float]:
    shares = record["busy_share"]
    return {role: shares[role] for role in roles_of(record, "actor") if role in shares}


def _rounds_sentence(gather: Gathering) -> str:
    if not gather["gradients_per_s"]:
        return ""
    gradients = f"{to_value(gather['gradients_per_s'])} gradients/s{_shares(gather['counts'])}."
    if gather["rule"] == "every":
        return f"Every gradient makes a version: {gradients}"
    takes = round_takes(gather["rule"], gather["num_gradients"])
    return f"A round takes {takes}: {to_value(gather['rounds_per_s'])} rounds/s, {gradients}"


def _shares(counts: list[int]) -> str:
    """Say which actor made most of the gradients and which made the fewest."""
    total = sum(counts)
    if len(counts) < 2 or not total:
        return ""
    who, whom = counts.index(max(counts)), counts.index(min(counts))
    most, least = to_percent(counts[who] / total), to_percent(counts[whom] / total)
    if most == least:
        return f"; each actor made {most}"
    return f"; actor-{who} made {most} of them, actor-{whom} {least}"


def _overdue_sentence(gather: Gathering) -> str:
    share = gather["overdue_share"]
    if share < WORTH_TELLING:
        return ""
    return (
        f"{to_percent(share)} of the gradients took longer than their given times: raise "
        "times.unit_s, or use fewer actors per core."
    )


def _dropped_sentence(gather: Gathering) -> str:
    if not gather["rounds_per_s"]:
        return ""
    if gather["rule"] == "every":
        return _too_old_sentence(gather["discarded_share"])
    share, steps = gather["discarded_share"], gather["discarded_step_share"]
    # A gradient that had only just begun is dropped like any other, and costs next to nothing.
    if min(share, share if steps is None else steps) < WORTH_TELLING:
        return "Hardly any work was dropped when rounds closed."
    told = f"{to_percent(share)} of the gradients"
    if steps is not None:
        told += f" and {to_percent(steps)} of the environment steps"
    sentence = f"{told} were dropped when rounds closed."
    if gather["rule"] == "barrier":
        return sentence
    # The number of unfinished gradients at the end of a round does not depend on its size.
    of, before = ("gradients", share) if steps is None else ("steps", steps)
    after = to_percent(before / (2.0 - before))
    return f"{sentence} With m = {2 * gather['num_gradients']}, about {after} of the {of} would be."


def _too_old_sentence(share: float) -> str:
    if share < WORTH_TELLING:
        return ""
    return (
        f"{to_percent(share)} of the gradients were discarded because they were more than max_lag "
        "versions old: raise max_lag, or use fewer actors."
    )


def _gain(record: Metrics, gather: Gathering, account: Account, path: CriticalPath) -> str:
    """Say what another rule or another m would gain; nothing where that is little."""
    if names := late_actors(gather):
        return (
            f"Going on without {names} would help most (algorithm.absent_after_s), unless it comes "
            "back."
        )
    if path == "learner":
        return (
            "Larger rounds or larger gradients would help most: the learner would have less to do."
        )
    if gather["rule"] == "every":
        return _gain_of_length(gather, account, path)
    if gather["rule"] != "barrier" or path != "neither":
        return _gain_of_m(gather, account, path)
    more = _without_waiting(record, account)
    if more < LEAST_GAIN:
        return ""
    # Another rule pays for messages once a round: that gain does not follow from the shares.
    how_much = f" (up to {to_times(more)} as many gradients)" if gather["network"] == "none" else ""
    return (
        "Not waiting for the slowest actor would help most: use rennala-nigt if all actors have "
        f"the same task, else malenia-nigt{how_much}."
    )


def _without_waiting(record: Metrics, account: Account) -> float:
    """Return how many times as many gradients all actors would make without waiting: an actor that
    is busy for a fifth of the time makes five times as many, as far as there are cores for it."""
    shares = list(_busy_actors(record).values()) or [account.actors.busy]
    more = sum(1 / max(LEAST_PART, share) for share in shares) / len(shares)
    on_core = account.actors.on_core
    if account.usable_cores is None or not on_core or not account.lacks_cores:
        return more
    return min(more, account.usable_cores / on_core)


def _gain_of_length(gather: Gathering, account: Account, path: CriticalPath) -> str:
    if path == "neither" and _waits_for_versions(gather, account):
        return (
            "Longer unrolls would help most: an actor waits until its gradient was applied, before "
            "it begins the next."
        )
    return ""


def _waits_for_versions(gather: Gathering, account: Account) -> bool:
    return account.actors.waits.get("grant", 0.0) > 1.0 - LIMIT and gather["times"] == "none"


def _gain_of_m(gather: Gathering, account: Account, path: CriticalPath) -> str:
    if (messages := _share_of_messages(gather)) >= LARGE:
        more = to_times(1 / max(LEAST_PART, 1.0 - messages))
        return f"A larger m would help most: fewer messages (up to {more} as many gradients)."
    dropped = gather["discarded_step_share"] or 0.0
    if dropped >= MUCH_DROPPED:
        more = to_times(1 / max(LEAST_PART, 1.0 - dropped))
        return f"A larger m would help most: less is dropped (up to {more} as many gradients)."
    if path == "neither" and _waits_for_versions(gather, account):
        return "A larger m would help most: the actors wait for the next version after each round."
    return ""
