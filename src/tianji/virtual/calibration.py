"""What the parts of a run do not explain, from the rehearsals in its profile.

Parts are measured one at a time. In a real run they also wake each other up and push each other out
of caches, the more so where processes share cores. A rehearsal is the real thing at one size: how
much slower it was than its own simulation holds for every size that is as crowded.
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
"""The rate that the simulator gives for what was rehearsed, from the parts alone."""


def crowd(num_threads: int, num_cores: int) -> float:
    """Threads that want a core, for every core; 1 where each has its own."""
    return max(1.0, num_threads / num_cores)


def slowdown(
    rehearsals: Sequence[Rehearsal],
    learner_threads: int,
    crowded: float,
    num_cores: int,
    simulated: Simulate,
) -> float:
    """How much longer everything takes than the sum of its parts, for a size that is `crowded`.

    num_cores: of the machine that the rehearsals ran on. Those with as many learner threads count,
    of them the ones nearest in how crowded they were; 1 where there are none.
    """

    def distance(tried: Rehearsal) -> float:
        threads = tried.num_actors * tried.actor_threads + tried.learner_threads
        return abs(math.log(crowd(threads, num_cores) / crowded))

    alike = [r for r in rehearsals if r.learner_threads == learner_threads and r.produced > 0]
    if not alike or num_cores < 1:
        return 1.0
    nearest = min(map(distance, alike))
    chosen = [tried for tried in alike if distance(tried) == nearest]
    expected = simulated(chosen[0])  # those at one distance are repeats of one size, or as crowded
    reached = [tried for tried in chosen if tried.num_actors == chosen[0].num_actors]
    return expected / statistics.fmean(tried.produced for tried in reached)


def slowed(scenario: Scenario, factor: float) -> Scenario:
    """The same with everything taking so many times as long; the network is not touched."""
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
