"""Choose the numbers of actors and threads that are worth measuring."""

from __future__ import annotations

from tianji.config.machine import Machine
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.planning.measure.crew import Sampled

MOST_POINTS = 8
ACTORS_PER_CORE = 2
MOST_WAITING_ACTORS = 64  # actors that mostly wait for their environments need no core of their own
WAITING_SHARE = 0.7  # an unroll that uses the processor for less of its time than this waits
MOST_AT_ONCE = 16  # a machine that runs this many actors is loaded
PROCESS_BYTES = 300 << 20  # of a process that measures, before it builds many environments
HEAVY_SHARE = 0.5
HEAVY_S = 0.0005  # sharing the inference of a row gains nothing if it is shorter than this
CORES_FOR_THREADS = 4
HELPS = 1.05  # the speed-up at which the next doubling of threads is worth measuring


def actor_counts(
    config: RunConfig, machine: Machine, are_waiting: bool = False, num_agents: int = 1
) -> list[int]:
    """Return the numbers of actors to measure, the largest first: few environments each.

    num_agents: environments that step as one (Probe.num_agents)."""
    if config.num_actors != "auto":
        return [config.num_actors]
    most = ACTORS_PER_CORE * len(machine.cores)
    if are_waiting:
        most = max(most, MOST_WAITING_ACTORS)
    counts = range(1, min(most, config.num_envs) + 1)
    even = [n for n in counts if config.num_envs % (n * num_agents) == 0]
    return spread(even, MOST_POINTS)[::-1]


def num_actors_at_once(config: RunConfig, machine: Machine, num_agents: int = 1) -> int:
    """Return how many actors to start: as many as can work beside the learner, no more than a run
    would have, and no more than there is memory for beside the learner."""
    most = max(actor_counts(config, machine, True, num_agents))
    fitting = machine.memory_bytes // PROCESS_BYTES - 1
    return max(1, min(most, len(machine.cores) - 1, fitting, MOST_AT_ONCE))


def spread(values: list[int], most: int) -> list[int]:
    """Return at most this many of the sorted values: both ends, the others evenly between."""
    if len(values) <= most:
        return values
    places = [round(i * (len(values) - 1) / (most - 1)) for i in range(most)]
    return [values[place] for place in places]


def thread_counts(config: RunConfig, machine: Machine) -> list[int]:
    """Return the numbers of learner threads to measure, the smallest first."""
    if config.learner_threads != "auto":
        return [config.learner_threads]
    return [2**power for power in range(len(machine.cores).bit_length())]


def is_waiting(alone_s: float, cpu_s: float) -> bool:
    """Return whether an unroll leaves its core to others for much of its time."""
    return cpu_s < WAITING_SHARE * alone_s


def is_inference_heavy(reading: Sampled, plan: RunPlan, num_cores: int) -> bool:
    """Return whether a second thread of an actor has work to do, and a core to do it on."""
    share = 1 - reading.cost.environment_share
    inference_s = share * reading.cost.unroll.alone_s / plan.unroll_length
    is_most = share > HEAVY_SHARE
    return num_cores >= CORES_FOR_THREADS and is_most and inference_s > HEAVY_S


def does_help(fewer_s: float, more_s: float) -> bool:
    """Return whether doubling the threads helped enough to double them again."""
    return fewer_s > HELPS * more_s


def loads(threads: list[int], index: int, num_others: int, num_cores: int) -> list[int]:
    """Return the learner threads that work beside the actors of point `index`.

    In the end every number of threads has been measured beside actors, and every point beside a
    learner. A learner that leaves no core is left out: waiting for a core is computed, and to
    measure it too would count it twice. num_others: how many points follow the first one.
    """
    threads = [count for count in threads if count < num_cores]
    if not threads:
        return []
    found = [threads[index % len(threads)]]
    return found + threads[num_others + 1 :] if index == 0 else found
