"""Other ways to keep actors and learner in step, or none, in place of pacing."""

from __future__ import annotations

from tianji.algorithms.interface import QueueCadence, ReplayCadence
from tianji.config.values import Values
from tianji.programs.style import Given, Style, fix, learns_from
from tianji.programs.styles import tianji


def free_settings(values: Values, given: Given) -> Values:
    """Let neither side wait; only a replay store has something to learn from at any time."""
    why = "a learner that never waits needs a replay store, which this algorithm has not."
    learns_from("free", values, ReplayCadence, why=why)
    why = "neither its actors nor its learner wait."
    return fix("free", values, given, why, balance="free", lag_target="auto")


def dropping_settings(values: Values, given: Given) -> Values:
    """Put a queue between actors and learner that gives up its oldest items when it is full."""
    return _with_queue("dropping", values, given)


def blocking_settings(values: Values, given: Given) -> Values:
    """Put a queue between actors and learner that makes actors wait when it is full."""
    return _with_queue("blocking", values, given)


def _with_queue(balance: str, values: Values, given: Given) -> Values:
    why = "it puts a queue between actors and learner, and this algorithm learns from none."
    learns_from(balance, values, QueueCadence, why=why)
    why = "a queue of fixed size is what keeps its actors and its learner in step."
    return fix(balance, values, given, why, balance=balance, lag_target="auto")


FREE = Style(
    name="free",
    about="Nothing keeps actors and learner in step: neither ever waits for the other.",
    settings=free_settings,
    program=tianji.program,
    differences=("Pacing: none; how often an item is used, and its lag, depend on the speeds.",),
    kind="ablation",
)
DROPPING = Style(
    name="dropping",
    about="Actors fill a queue of fixed size, which gives up its oldest item when it is full.",
    settings=dropping_settings,
    program=tianji.program,
    differences=(
        "Pacing: none; items that are too many are lost and counted, and max_lag bounds nothing.",
    ),
    kind="ablation",
)
BLOCKING = Style(
    name="blocking",
    about="Actors fill a queue of fixed size, and wait while it is full.",
    settings=blocking_settings,
    program=tianji.program,
    differences=(
        "Pacing: a full queue makes actors wait, whatever the lag is; max_lag bounds nothing.",
    ),
    kind="ablation",
)
