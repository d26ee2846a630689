"""The cores that each of several runs gets. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tianji.config.run import RunConfig


def share_cores(
    cores: Sequence[int], num_runs: int, cores_wanted: int
) -> tuple[tuple[int, ...], ...]:
    """Return the cores of every run that goes on at the same time; no core is shared.

    As many runs go on as get `cores_wanted` cores each, but at least one. If they cannot all go on
    at once, they are spread evenly over as few turns as possible.

    >>> share_cores(range(8), num_runs=5, cores_wanted=2)
    ((0, 1), (2, 3), (4, 5))
    """
    most = max(1, min(num_runs, len(cores) // cores_wanted))
    turns = -(-num_runs // most)
    at_once = -(-num_runs // turns)
    each = len(cores) // at_once
    return tuple(tuple(cores[i * each : (i + 1) * each]) for i in range(at_once))


def cores_wanted(config: RunConfig) -> int:
    """Return one core for every process and thread that a run needs at least."""
    if config.engine != "local":
        return 1
    actors, threads = config.num_actors, config.learner_threads
    return (1 if actors == "auto" else actors) + (1 if threads == "auto" else threads)
