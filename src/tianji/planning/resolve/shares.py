"""Choose the number of actors without a profile: the planner's model of a version's duration, fed
with a short look at the environment and with the fastest learner seen.

    total(n) = start-up of n actors + max_env_steps / steps per version * period(n)

The smallest number of actors within TIE_SHARE of the shortest total is taken. An environment that
one actor steps faster than the learner learns gets one actor; one whose steps keep a core busy gets
the cores that the learner leaves, or all of them where the learner leaves most of its own; one that
mostly waits (for a simulator, a network, or in a rare long step) gets several actors for each core.

`needs_all_cores` says whether the learner shares a core with the actors, which then mostly wait.
`pin_cores` chooses the cores that each worker is pinned to.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tianji.algorithms.interface import QueueCadence, ReplayCadence
from tianji.config.machine import Machine
from tianji.config.run import RunConfig
from tianji.costs.work import Work
from tianji.envs.timing import StepTimes
from tianji.models.sizes import hidden_widths
from tianji.planning.resolve.slots import Run
from tianji.planning.solve.period import Period, Sides, period

INFERENCE_S = 50e-6  # an actor's own work in a step, for a small network
# One environment step in one epoch of the fastest learner seen (580,000 per second), for networks
# of up to SMALL_NETWORK parameters. Most learners are slower, so the actors have a reserve.
TRAINED_STEP_S = 2e-6
SMALL_NETWORK = 10_000
VERSION_S = 1e-3  # receiving, the overhead of updates, and publishing
START_S = 1.5  # processor time to start one actor: it loads torch
MOST_PER_CORE = 8  # actors that mostly wait: each takes memory, and time to start
TIE_SHARE = 0.1  # all of this is an estimate
# Where actors would share the learner's core, it is taken to be this many times slower than the
# fastest one: a slow learner needs its core, and how slow it is shows only in the run.
SLOWER = 2.0
FAR_LONGER = 10.0  # times the actors' work: all of it is an estimate
LARGE_PRODUCT = 1 << 23  # multiplications that threads divide with gain: 128 x 256 x 256


def choose_actors(run: Run, num_cores: int, counts: Sequence[int]) -> int:
    """Return one of these numbers of actors. The probe has timed a few steps."""
    config, cadence = run.config, run.cadence
    total_s: dict[int, float] = {}
    for count in counts:
        unroll = _unroll(run, config.num_envs // count)
        busy_cores = count * unroll.cores
        is_alone = busy_cores <= max(1, num_cores - 1)  # the learner, on its core
        is_crowded = busy_cores > num_cores or (not is_alone and run.device != "cpu")
        if count > min(counts) and (is_crowded or count > MOST_PER_CORE * num_cores):
            continue
        learner_s = _version_s(run) * (1.0 if is_alone else SLOWER)
        version_s = _period(run, count, unroll, learner_s, num_cores).seconds
        versions = config.max_env_steps / cadence.steps_per_version
        total_s[count] = versions * version_s + START_S * count / num_cores
    enough_s = min(total_s.values()) * (1 + TIE_SHARE)
    return min(count for count, seconds in total_s.items() if seconds <= enough_s)


def needs_all_cores(run: Run) -> bool:
    """Return whether updates are large products that take far longer than making their steps. SAC
    with one update for every step: two threads make 1.6 times the updates of one."""
    cadence = run.cadence
    if run.probe.times is None or not isinstance(cadence, QueueCadence | ReplayCadence):
        return False
    widths = hidden_widths(run.probe.spaces, run.config)
    widest = max((one * other for one, other in pairwise(widths)), default=0)
    round_steps = cadence.unroll_length * run.config.num_envs
    acting_s = _unroll(run, run.config.num_envs).cpu_s * cadence.steps_per_version / round_steps
    is_far_longer = _version_s(run) > FAR_LONGER * acting_s
    return is_far_longer and _steps_per_update(cadence) * widest >= LARGE_PRODUCT


def _steps_per_update(cadence: QueueCadence | ReplayCadence) -> int:
    if isinstance(cadence, ReplayCadence):
        return cadence.trained_steps_per_version // max(1, cadence.num_updates)
    return cadence.steps_per_update or cadence.steps_per_version


def _unroll(run: Run, num_envs: int) -> Work:
    """Return the work of one unroll. Steps of further environments wait as those of the first."""
    times, length = run.probe.times, run.cadence.unroll_length
    assert times is not None
    env_s = times.mean_s + (num_envs - 1) * run.probe.more_step_s
    cpu_s = env_s * times.cpu_s / times.mean_s
    return Work(length * (env_s + INFERENCE_S), length * (cpu_s + INFERENCE_S), strain=1.0)


def _period(run: Run, num_actors: int, unroll: Work, version_s: float, num_cores: int) -> Period:
    config, cadence = run.config, run.cadence
    steps_per_unroll = cadence.unroll_length * (config.num_envs // num_actors)
    return period(
        Sides(
            num_actors=num_actors,
            unrolls_per_version=cadence.steps_per_version // steps_per_unroll,
            unroll=unroll,
            version=Work(version_s, version_s, strain=1.0),
            receive_s=0.0,
            num_cores=num_cores,
            is_serial=config.max_lag == 0,
        )
    )


def _version_s(run: Run) -> float:
    step_s = TRAINED_STEP_S * max(1.0, run.num_parameters / SMALL_NETWORK)
    return VERSION_S + run.cadence.trained_steps_per_version * step_s


def uneven_note(times: StepTimes | None, config: RunConfig, steps_per_version: int) -> str:
    """Return a sentence about long steps and their cost; empty if there are none.

    An item may be `max_lag` versions behind, so no version can be made while a step lasts that
    began that many versions ago: one version takes at least longest_s / max_lag.
    """
    if times is None or not times.is_uneven:
        return ""
    text = times.in_words()
    if config.max_lag == 0:
        return text
    bound = steps_per_version * config.max_lag / times.longest_s
    possible = config.num_envs / times.mean_s
    if bound >= possible:
        return text
    return (
        f"{text} With versions of {steps_per_version:,} steps and max_lag = {config.max_lag}, long "
        f"steps hold the run to {bound:,.0f} of {possible:,.0f} possible steps/s: longer unrolls "
        "or a larger max_lag give more."
    )


def pin_cores(
    machine: Machine, num_actors: int, actor_threads: int, learner_threads: int
) -> dict[str, tuple[int, ...]]:
    """Return the cores of each worker; empty if workers are not pinned.

    Workers are pinned only if the run takes all usable cores, or one hyper-thread of each, and
    every thread has its own: two workers on one core, or two runs on the same cores, are worse than
    no pinning.
    """
    order = _core_order(machine)
    wanted = num_actors * actor_threads + learner_threads
    if machine.is_shared or wanted not in (len(machine.cores), len(_firsts(machine))):
        return {}
    cores = {"learner": _learner_cores(machine, order, learner_threads)}
    free = [core for core in order if core not in cores["learner"]]
    for index in range(num_actors):
        mine = free[index * actor_threads : (index + 1) * actor_threads]
        cores[f"actor-{index}"] = tuple(mine)
    return cores


def keep_core_for_server(
    machine: Machine, num_actors: int, learner_threads: int
) -> dict[str, tuple[int, ...]]:
    """Return the cores of each worker where a server on the GPU infers for all actors.

    The learner's process, which holds the server, has cores of its own: every actor waits for its
    answers, and on a core that is busy a thread wakes up milliseconds late. The actors share the
    other cores.
    """
    if machine.is_shared or num_actors < 2 or learner_threads >= len(machine.cores):
        return {}
    order = tuple(_core_order(machine))
    own, others = order[:learner_threads], order[learner_threads:]
    return {"learner": own, **{f"actor-{n}": others for n in range(num_actors)}}


def _learner_cores(machine: Machine, order: Sequence[int], threads: int) -> tuple[int, ...]:
    """Return cores of one memory node if it has enough, hyper-threads last."""
    home = set(_nodes(machine)[0])
    near = [core for core in order if core in home]
    return tuple((near if len(near) >= threads else order)[:threads])


def _core_order(machine: Machine) -> list[int]:
    """Return one hyper-thread of every core, node by node, then the others.

    Neighbours in this list share a node's memory; two threads share a core only if all are taken.
    """
    firsts = set(_firsts(machine))
    by_node = [core for node in _nodes(machine) for core in node]
    return sorted(by_node, key=lambda core: core not in firsts)  # sorting keeps the order


def _nodes(machine: Machine) -> list[tuple[int, ...]]:
    """Return the memory nodes, the largest first: the learner and most actors are placed there."""
    firsts = set(_firsts(machine))
    nodes = machine.nodes or (machine.cores,)
    return sorted(nodes, key=lambda node: -len(firsts.intersection(node)))


def _firsts(machine: Machine) -> list[int]:
    """Return one hyper-thread of each core."""
    later = {core for group in machine.siblings for core in group[1:]}
    return [core for core in machine.cores if core not in later]
