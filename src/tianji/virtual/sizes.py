"""The scenario of a run at any size, from its profile.

Parts are measured one at a time. In a real run they also wake each other and evict each other from
caches, above all where processes share cores. A rehearsal is a real run at one size; its slowdown
against its own simulation, which the costs of the parts do not explain, is used for every size that
is as crowded.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tianji.algorithms.interface import Cadence
from tianji.algorithms.registry import load_algorithm
from tianji.balance.set_point import SetPoint
from tianji.config.run import Combine, RunConfig
from tianji.costs.profile import Profile, Rehearsal
from tianji.costs.work import Work, actor_work, learner_cost
from tianji.virtual.clock import NetworkModel
from tianji.virtual.cluster import Machines
from tianji.virtual.costs import LearnerParts, learner_parts
from tianji.virtual.groups.combining import ALONE, Together
from tianji.virtual.roles import Pace
from tianji.virtual.simulate import Scenario, Simulated, num_slices, simulate

# A gateway's work for one item, encrypted: 4 KB at 78 MB/s, 2 MB at 414 MB/s (decision 0024).
FORWARD_S, FORWARD_BYTES_PER_S = 45e-6, 450e6
MOST_TICKS = 256  # ticks of a version; of more updates, several are simulated in one tick


@dataclass(frozen=True, slots=True)
class Size:
    """How many of everything.

    Environments grow with the actors, and a version with them: batch and updates stay proportional
    to the steps, so that the ratio stays the same.

    num_nodes: machines of one group. groups_per_node: groups on one machine; one of the two is 1.
    num_groups: groups in all. cores_per_node: cores of a machine, for all groups on it.
    """

    actors_per_node: int
    envs_per_actor: int
    cores_per_node: int
    learner_threads: int = 1
    actor_threads: int = 1
    num_nodes: int = 1
    num_groups: int = 1
    groups_per_node: int = 1
    combine: Combine = "gradients"
    num_versions: int = 50
    network: NetworkModel = field(default_factory=NetworkModel)

    @property
    def num_hosts(self) -> int:
        """Return the machines of all groups."""
        return self.num_nodes * -(-self.num_groups // self.groups_per_node)

    @property
    def cores_per_group(self) -> int:
        """Return the cores of one group on a machine; 0 where there are fewer than groups."""
        return self.cores_per_node // self.groups_per_node

    @property
    def shares_cores(self) -> bool:
        """Return whether the groups of a machine share its cores: each has more threads than its
        share has cores, so that nothing is pinned."""
        return self.groups_per_node > 1 and num_workers(self) > self.cores_per_group

    @property
    def num_actors(self) -> int:
        """Return the actors of one group."""
        return self.num_nodes * self.actors_per_node


def enough_cores(size: Size) -> Size:
    """Return the size with at least a core for every process."""
    return replace(size, cores_per_node=max(size.cores_per_node, num_workers(size)))


def scales(size: Size) -> list[Size]:
    """Return sizes of 1, 2, 4 ... machines up to this many; with one machine, of groups; with one
    group, of actors."""
    if size.num_nodes == 1 and size.num_hosts > 1:
        each = size.groups_per_node
        return [replace(size, num_groups=each * hosts) for hosts in doublings(size.num_hosts)]
    if size.groups_per_node > 1:
        counts = doublings(size.groups_per_node)
        return [replace(size, num_groups=n, groups_per_node=n) for n in counts]
    if size.num_nodes > 1:
        return [replace(size, num_nodes=count) for count in doublings(size.num_nodes)]
    return [replace(size, actors_per_node=n) for n in doublings(size.actors_per_node)]


def doublings(most: int) -> list[int]:
    """Return 1, 2, 4 ... and this number."""
    return [*(2**power for power in range(most.bit_length()) if 2**power < most), most]


def simulate_size(config: RunConfig, profile: Profile, size: Size) -> Simulated:
    """Simulate a run at this size, from its costs and the slowdown of its rehearsals."""

    def simulated(tried: Rehearsal) -> float:
        as_tried = Size(
            actors_per_node=tried.num_actors,
            envs_per_actor=config.num_envs // tried.num_actors,
            cores_per_node=profile.num_cores,
            learner_threads=tried.learner_threads,
            actor_threads=tried.actor_threads,
        )
        return simulate(scenario_of(config, profile, as_tried)).produced

    crowded = crowd(size.groups_per_node * num_workers(size), size.cores_per_node)
    factor = slowdown(
        profile.rehearsals, size.learner_threads, crowded, profile.num_cores, simulated
    )
    found = simulate(slowed(scenario_of(config, profile, size), factor))
    return replace(found, slowdown=factor)


def scenario_of(config: RunConfig, profile: Profile, size: Size) -> Scenario:
    cadence = load_algorithm(config.algorithm.name).cadence(config)
    steps_per_unroll = cadence.unroll_length * size.envs_per_actor
    growth = size.num_actors * size.envs_per_actor / config.num_envs
    steps_per_version = round(growth * cadence.steps_per_version)
    unroll = actor_work(profile, size.envs_per_actor, size.actor_threads).unroll
    parts = _parts(profile, cadence, size)
    num_updates = max(1, round(growth * parts.num_updates))
    together, combining = _together(config, profile, size), ALONE
    if together is not None:
        noise = learner_cost(profile, size.learner_threads).version.noise
        version_s = growth * parts.num_updates * parts.update_s
        combining = together.costs(version_s / num_updates, version_s, noise)
    learner = _grown(parts, num_updates, growth, combining.mix_s)
    unroll_bytes = _unroll_bytes(profile, size)
    has_own_core = num_workers(size) <= size.cores_per_group
    pace = Pace(
        unroll=unroll,
        num_slices=num_slices(unroll.alone_s, cadence.unroll_length, has_own_core),
        steps_per_unroll=steps_per_unroll,
        can_be_short=cadence.lookahead == 1,
    )
    return Scenario(
        paces=(pace,) * size.num_actors,
        learner=learner,
        point=SetPoint(
            steps_per_version // steps_per_unroll,
            math.ceil(cadence.warmup_steps / steps_per_unroll),
            min(1, config.max_lag),
        ),
        max_lag=config.max_lag,
        trained_steps_per_version=round(growth * cadence.trained_steps_per_version),
        num_versions=size.num_versions,
        machines=Machines(
            cores_per_node=size.cores_per_node if size.shares_cores else size.cores_per_group,
            num_nodes=size.num_nodes,
            unroll_bytes=unroll_bytes,
            policy_bytes=profile.policy_bytes,
            forward_s=FORWARD_S + unroll_bytes / FORWARD_BYTES_PER_S,
            network=size.network,
        ),
        num_groups=size.num_groups,
        groups_per_node=size.groups_per_node,
        shares_cores=size.shares_cores,
        together=together,
        combining=combining,
        updates_per_tick=num_updates / learner.num_updates,
    )


def num_workers(size: Size) -> int:
    """Return the threads on the learner's machine."""
    gateway = int(size.num_nodes > 1)
    return size.actors_per_node * size.actor_threads + size.learner_threads + gateway


def _together(config: RunConfig, profile: Profile, size: Size) -> Together | None:
    """Return what the groups exchange; None for one group."""
    if size.num_groups == 1:
        return None
    unroll = actor_work(profile, size.envs_per_actor, size.actor_threads).unroll
    busy = size.actors_per_node * unroll.cores + size.learner_threads
    return Together(
        num_groups=size.num_groups,
        groups_away=max(0, size.num_groups - size.groups_per_node),
        combine=size.combine,
        combine_every=config.combine_every,
        nbytes=profile.policy_bytes,
        network=size.network,
        is_crowded=busy * size.groups_per_node > size.cores_per_node,
    )


def _parts(profile: Profile, cadence: Cadence, size: Size) -> LearnerParts:
    """Return the costs of a version for as many environments as were measured."""
    unrolls = cadence.steps_per_version / (cadence.unroll_length * size.envs_per_actor)
    return learner_parts(profile, size.learner_threads, unrolls)


def _grown(parts: LearnerParts, num_updates: int, growth: float, mix_s: float) -> LearnerParts:
    """Return the costs of a version that is larger by `growth`; of many updates, several are
    simulated in one tick. mix_s: work in every update to mix with other groups."""
    num_ticks = min(num_updates, MOST_TICKS)
    updating_s = growth * parts.num_updates * parts.update_s + num_updates * mix_s
    return replace(parts, num_updates=num_ticks, update_s=updating_s / num_ticks)


def _unroll_bytes(profile: Profile, size: Size) -> int:
    """Scale the size of an unroll with its environments."""
    most = max(actor.num_envs for actor in profile.actors)
    return math.ceil(profile.unroll_bytes * size.envs_per_actor / most)


# Returns the simulated rate of a rehearsal, from the costs of the parts alone.
Simulate = Callable[[Rehearsal], float]


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
