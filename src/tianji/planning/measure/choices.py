"""Which points are worth measuring: environments per actor, and threads."""

from __future__ import annotations

from tianji.config.machine import Machine
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.planning.measure.readings import Sampled

MOST_POINTS = 8
ACTORS_PER_CORE = 2
MOST_WAITING_ACTORS = 64
"""Actors that mostly wait for their environments need no core of their own."""
WAITING_SHARE = 0.7
"""An unroll that uses the processor for less of its time than this waits."""
MOST_SAMPLERS = 16
"""Actors that are measured at once: a machine this busy is loaded already."""
WORKER_BYTES = 300 << 20
"""What a process that measures takes, before it has built many environments."""
HEAVY_SHARE = 0.5
HEAVY_S = 0.0005
"""Inference of a row that is shorter than this gains nothing by being shared."""
CORES_FOR_THREADS = 4
HELPS = 1.05
"""Twice the threads are worth another look only while they bring this much."""


def actor_counts(config: RunConfig, machine: Machine, are_waiting: bool = False) -> list[int]:
    """Numbers of actors to measure, the most first: they have the fewest environments each."""
    if config.num_actors != "auto":
        return [config.num_actors]
    most = ACTORS_PER_CORE * len(machine.cores)
    if are_waiting:
        most = max(most, MOST_WAITING_ACTORS)
    shares = range(1, min(most, config.num_envs) + 1)
    return spread([n for n in shares if config.num_envs % n == 0], MOST_POINTS)[::-1]


def sampler_count(config: RunConfig, machine: Machine) -> int:
    """Actors to start for measuring: as many as can work beside the learner, no more than a run
    would have, and no more than there is memory for, the learner's process included."""
    most = max(actor_counts(config, machine, are_waiting=True))
    beside = len(machine.cores) - 1
    fitting = machine.memory_bytes // WORKER_BYTES - 1
    return max(1, min(most, beside, fitting, MOST_SAMPLERS))


def spread(values: list[int], most: int) -> list[int]:
    """At most so many of the sorted values, both ends among them, the others evenly between."""
    if len(values) <= most:
        return values
    places = [round(i * (len(values) - 1) / (most - 1)) for i in range(most)]
    return [values[place] for place in places]


def thread_counts(config: RunConfig, machine: Machine) -> list[int]:
    """Learner threads to measure, fewest first."""
    if config.learner_threads != "auto":
        return [config.learner_threads]
    cores = len(machine.cores)
    return [2**power for power in range(cores.bit_length()) if 2**power <= cores]


def is_waiting(alone_s: float, cpu_s: float) -> bool:
    """Whether an unroll leaves its core to others for a good part of its time."""
    return cpu_s < WAITING_SHARE * alone_s


def is_inference_heavy(reading: Sampled, plan: RunPlan, num_cores: int) -> bool:
    """Whether a second thread has something to do in an actor, and somewhere to do it."""
    inference_s = (1 - reading.environment_share) * reading.unroll_s / plan.unroll_length
    is_most = reading.environment_share < 1 - HEAVY_SHARE
    return num_cores >= CORES_FOR_THREADS and is_most and inference_s > HEAVY_S


def does_help(fewer_s: float, more_s: float) -> bool:
    """Whether twice the threads brought enough to try twice as many again."""
    return fewer_s > HELPS * more_s


def loads(threads: list[int], index: int, num_others: int, num_cores: int) -> list[int]:
    """Learner threads that work beside the actors of point `index`, so that in the end every
    number of threads has met actors, and every point a learner.

    A learner that leaves no core meets nobody: what waiting for a core costs is computed, and to
    measure it as well would count it twice.

    num_others: how many points follow the first one.
    """
    threads = [count for count in threads if count < num_cores]
    if not threads:
        return []
    found = [threads[index % len(threads)]]
    return found + threads[num_others + 1 :] if index == 0 else found
