"""Lines of the live display about the rounds of a run that gathers gradients.

rounds    12.3/s  first 20 gradients  version 160  waits for actor-3
gradients 246/s  █▆▃▁ 12 % to 41 % by actor  4 % of steps discarded
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tianji.display.marks import Marks, to_columns
from tianji.wording import to_percent, to_value

RULES = {
    "first": "first {m} gradients",
    "harmonic": "every actor, worth {m}",
    "barrier": "one of every actor",
    "every": "every gradient",
}
MUCH_DROPPED = 0.2
"""Share of the environment steps from which on dropping less gains most."""
MOST_COLUMNS = 24
MOST_NAMED = 2
Parts = list[tuple[str, str]]


def rounds_parts(record: Mapping[str, Any]) -> Parts:
    """How rounds go, and whom they wait for."""
    gather, restarts = record["gather"], record.get("restarts") or 0
    rule = RULES[gather["rule"]].format(m=gather["num_gradients"])
    parts = [
        (f"{to_value(gather.get('rounds_per_s'))}/s", ""),
        (f"  {rule}", "dim"),
        ("  version ", "dim"),
        (f"{record.get('version') or 0:,}", ""),
    ]
    if names := waited_for(gather):
        parts += [(f"  waits for {names}", "yellow")]
    if absent := gather.get("absent"):
        parts += [(f"  without {named(absent)}", "yellow")]
    return [*parts, (f"  restarts {restarts}", "yellow")] if restarts else parts


def gradients_parts(record: Mapping[str, Any], marks: Marks) -> Parts:
    """Who makes the gradients, and what becomes of them."""
    gather = record["gather"]
    is_much = (gather.get("discarded_step_share") or 0.0) > MUCH_DROPPED
    return [
        (f"{to_value(gather.get('gradients_per_s'))}/s", ""),
        *_by_actor(gather.get("counts") or [], marks),
        (f"  {cost_in_words(record)}", "yellow" if is_much else ""),
    ]


def cost_in_words(record: Mapping[str, Any]) -> str:
    """What not waiting costs: work that is dropped or, where none is, old gradients."""
    gather, lag = record["gather"], record.get("lag_versions", {})
    if gather["rule"] == "every":
        return f"lag {to_value(lag.get('mean'))} (max {to_value(lag.get('max'))})"
    steps = gather.get("discarded_step_share")
    if steps is None:
        return f"{to_percent(gather.get('discarded_share'))} of gradients discarded"
    return f"{to_percent(steps)} of steps discarded"


def _by_actor(counts: Sequence[int], marks: Marks) -> Parts:
    total = sum(counts)
    if len(counts) < 2 or not total:
        return []
    spread = f" {to_percent(min(counts) / total)} to {to_percent(max(counts) / total)} by actor"
    return [("  ", ""), (to_columns(counts[:MOST_COLUMNS], marks), "magenta"), (spread, "dim")]


def waited_for(gather: Mapping[str, Any]) -> str:
    """Whom the open round waits for, for longer than they use to take; else nothing."""
    return named(gather.get("late") or [])


def named(actors: Sequence[int]) -> str:
    """A few of them by name."""
    more = f" and {len(actors) - MOST_NAMED} more" if len(actors) > MOST_NAMED else ""
    return ", ".join(f"actor-{actor}" for actor in actors[:MOST_NAMED]) + more


def short_name(env: str) -> str:
    """Of `module:name` the name."""
    return env.rpartition(":")[2]
