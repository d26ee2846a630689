"""What several ablations need of a run, checked before anything starts."""

from __future__ import annotations

from tianji.algorithms.interface import QueueCadence, ReplayCadence
from tianji.config.values import Values
from tianji.programs.style import Given, fix, learns_from, refusal


def sends_items(style: str, values: Values) -> None:
    """Raise UsageError for algorithms whose actors send gradients."""
    why = "its actors send gradients and wait for the next version in any case."
    learns_from(style, values, QueueCadence, ReplayCadence, why=why)


def on_one_machine(style: str, values: Values, given: Given) -> Values:
    """Return the settings without actors on other hosts; UsageError if the person gave some, or an
    engine with other channels."""
    if values["engine"] not in ("local", "inline"):
        why = "its actors wait on shared memory, which this engine has not between all roles."
        raise refusal(style, values, "engine", why, "local")
    why = "its actors wait on the shared memory of one machine."
    return fix(style, values, given, why, actor_hosts=0)
