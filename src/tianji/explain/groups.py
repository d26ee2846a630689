"""Words for a run whose learners make every update together, and wait for each other. Pure."""

from __future__ import annotations

from tianji.explain.words import LEAST_BUSY, LEAST_GAIN, LIMIT, another_core, to_times
from tianji.observe.account import Account
from tianji.wording import to_percent

SLOW = 0.1
"""A learner that waits so much less than the others is the one that they wait for."""


def wait_for_each_other(account: Account) -> bool:
    """Return whether the learners do little else than their updates and waiting for each other, or
    wait for each other more than half of the time."""
    learner = account.learner
    waiting = learner.waits.get("others", 0.0)
    return learner.busy < LIMIT and (learner.busy + waiting >= LIMIT or waiting > 1 / 2)


def groups_sentence(account: Account) -> str:
    """Name waiting for other groups as the bottleneck, and the group that is waited for."""
    waited = to_percent(account.learner.waits["others"])
    learner, actors = to_percent(account.learner.busy), to_percent(account.actors.busy)
    first = (
        f"Waiting for other groups is the bottleneck: a learner spends {waited} of the time on "
        f"adding up gradients with the others or waiting for them, and is busy {learner}, the "
        f"actors {actors}."
    )
    slow = slow_learner(account)
    return first if slow is None else f"{first} The others wait for {slow}."


def slow_learner(account: Account) -> str | None:
    """Return the learner that the others wait for; None where all wait about as long."""
    (slow, least), *others = sorted(account.waited_for_others.items(), key=lambda each: each[1])
    return slow if all(share > least + SLOW for _, share in others) else None


def gain_of_groups(account: Account) -> str:
    """Say what would shorten the waits, and how much faster the run would be without them."""
    if account.lacks_cores:
        return f"{another_core(account)} would help most: the groups sometimes lack one."
    busiest = max(account.learner.busy, account.actors.busy, LEAST_BUSY)
    faster = (account.learner.busy + account.learner.waits["others"]) / busiest
    slow = slow_learner(account)
    what = (
        "Larger minibatches (fewer reductions), or --combine average or gossip (no waits),"
        if slow is None
        else f"A faster {slow}, or --combine average or gossip (no waits),"
    )
    if faster < LEAST_GAIN:
        return f"{what} would help most, but only a little."
    return f"{what} would help most (up to {to_times(faster)} as fast)."
