"""Words about rounds of gradients, for explanations, the display and plans. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tianji.records import Gathering, Lag
from tianji.wording import listed, to_percent, to_value

if TYPE_CHECKING:
    from tianji.algorithms.interface import Gather

MUCH_DROPPED = 0.2
"""Share of the environment steps from which on dropping less would help most."""
MOST_NAMED = 2


class RuleWords(NamedTuple):
    """Words for a gather rule; `{m}` stands for the number of gradients."""

    short: str
    takes: str
    """What a round takes."""


RULES = {
    "first": RuleWords("first {m} gradients", "the first {m} gradients, from any actor"),
    "harmonic": RuleWords(
        "every actor, harmonic count {m}",
        "gradients from every actor until their harmonic count reaches {m}",
    ),
    "barrier": RuleWords("one of every actor", "one gradient from every actor"),
    "every": RuleWords("every gradient", "a single gradient"),
}


def rule_in_short(gather: Gathering) -> str:
    return RULES[gather["rule"]].short.format(m=gather["num_gradients"])


def round_in_words(gather: Gather) -> str:
    """Say what a round takes, as the settings of a run ask for it."""
    if gather.rule == "every":
        note = f" ({gather.note})" if gather.note else ""
        return f"every gradient makes a version{note}"
    words = round_takes(gather.rule, gather.num_gradients)
    if gather.rule in ("first", "harmonic") and gather.first_num_gradients != gather.num_gradients:
        words += f"; {gather.first_num_gradients} in the first"
    return words


def round_takes(rule: str, num_gradients: int) -> str:
    if rule == "first" and num_gradients == 1:
        return "the first gradient, from any actor"
    return RULES[rule].takes.format(m=num_gradients)


def late_actors(gather: Gathering) -> str:
    """Name the actors that the open round waits for, for longer than they usually take."""
    return named(gather.get("late", []))


def named(actors: list[int]) -> str:
    return listed([f"actor-{actor}" for actor in actors], MOST_NAMED)


def cost_in_words(gather: Gathering, lag: Lag) -> str:
    """Say what not waiting costs: dropped work or, where none is dropped, old gradients."""
    if gather["rule"] == "every":
        return f"lag {to_value(lag['mean'])} (max {to_value(lag['max'])})"
    steps = gather["discarded_step_share"]
    if steps is None:
        return f"{to_percent(gather['discarded_share'])} of gradients discarded"
    return f"{to_percent(steps)} of steps discarded"
