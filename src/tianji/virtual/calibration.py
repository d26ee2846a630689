"""The slowdown that the costs of the parts do not explain, from the rehearsals in a profile.

Parts are measured one at a time. In a real run they also wake each other and evict each other from
caches, above all where processes share cores. A rehearsal is a real run at one size; its slowdown
against its own simulation is used for every size that is as crowded.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace

from tianji.costs.profile import Rehearsal
from tianji.costs.work import Work
from tianji.virtual.scenario import Scenario

Simulate = Callable[[Rehearsal], float]
"""Returns the simulated rate of a rehearsal, from the costs of the parts alone."""


def crowd(num_threads: int, num_cores: int) -> float:
    """Return the threads per core; 1 where each has its own."""
    return max(1.0, num_threads / num_cores)


def slowdown(
    rehearsals: Sequence[Rehearsal],
    learner_threads: int,
    crowded: float,
    num_cores: int,
    simulated: Simulate,
) -> float:
    """Return how many times longer everything takes than its parts, at a size that is `crowded`.

    Rehearsals with as many learner threads count, and of them those that were about as crowded;
    1 without any. num_cores: the cores of the machine of the rehearsals.
    """

    def distance(tried: Rehearsal) -> float:
        threads = tried.num_actors * tried.actor_threads + tried.learner_threads
        return abs(math.log(crowd(threads, num_cores) / crowded))

    alike = [r for r in rehearsals if r.learner_threads == learner_threads and r.produced > 0]
    if not alike or num_cores < 1:
        return 1.0
    nearest = min(map(distance, alike))
    chosen = [tried for tried in alike if distance(tried) == nearest]
    expected = simulated(chosen[0])  # all at one distance are equally crowded
    reached = [tried for tried in chosen if tried.num_actors == chosen[0].num_actors]
    return expected / statistics.fmean(tried.produced for tried in reached)


def slowed(scenario: Scenario, factor: float) -> Scenario:
    """Return the scenario with all work slower by this factor; the network stays the same."""
    paces = {pace: replace(pace, unroll=_slowed(pace.unroll, factor)) for pace in scenario.paces}
    learner = scenario.learner
    return replace(
        scenario,
        paces=tuple(paces[pace] for pace in scenario.paces),
        learner=replace(
            learner,
            receive_s=learner.receive_s * factor,
            update_s=learner.update_s * factor,
            publish_s=learner.publish_s * factor,
        ),
    )


def _slowed(work: Work, factor: float) -> Work:
    return Work(work.alone_s * factor, work.cpu_s * factor, work.strain)
