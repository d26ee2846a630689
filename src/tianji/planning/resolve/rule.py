"""Shares of the machine without a measured plan: the planner's model of a version's duration, fed
with a first look at the environment and with a learner that is as fast as any seen.

    total(n) = start-up of n actors + max_env_steps / steps per version * period(n)

The number of actors with the shortest total is taken, and of those that are nearly as good the
smallest. So an environment that one actor steps faster than the learner learns gets one actor, one
whose steps keep a core busy gets the cores that the learner leaves, and one that mostly waits (for
a simulator, a network, or in a rare long step) gets several actors for each core.
"""

from __future__ import annotations

from collections.abc import Sequence

from tianji.algorithms.interface import Cadence
from tianji.config.machine import Machine
from tianji.config.run import RunConfig
from tianji.costs.work import Work
from tianji.envs.build import Probe
from tianji.envs.timing import StepTimes
from tianji.planning.solve.period import Period, Sides, period

INFERENCE_S = 50e-6
"""What an actor does in a step beside its environments, for a small network."""
TRAINED_STEP_S = 2e-6
"""One environment step in one epoch, of the fastest learner seen: 580,000 a second. Most are
slower, so that actors which keep up with this one have a reserve."""
SMALL_NETWORK = 10_000
"""Parameters up to which that holds; beyond, time grows with them."""
VERSION_S = 1e-3
"""Receiving, the overhead of updates, and publishing."""
START_S = 1.5
"""Processor time for starting one actor: it loads torch."""
MOST_PER_CORE = 8
"""Actors for each core where all of them mostly wait: each takes memory, and time to start."""
TIE_SHARE = 0.1
"""Totals this near to the best are as good, since all of this is a guess."""


def choose_actors(
    config: RunConfig,
    machine: Machine,
    probe: Probe,
    cadence: Cadence,
    counts: Sequence[int],
    num_parameters: int,
) -> int:
    """The number of actors, out of the counts that are possible. The probe has looked at steps."""
    assert probe.times is not None
    num_cores = len(machine.cores)
    least = min(counts)
    total_s: dict[int, float] = {}
    for count in counts:
        unroll = _unroll(probe.times, probe.more_step_s, cadence, config.num_envs // count)
        is_crowded = count * unroll.cores > max(1, num_cores - 1)
        if count > least and (is_crowded or count > MOST_PER_CORE * num_cores):
            continue
        found = _period(config, cadence, count, unroll, num_parameters, num_cores)
        versions = config.max_env_steps / cadence.steps_per_version
        total_s[count] = versions * found.seconds + START_S * count / num_cores
    enough_s = min(total_s.values()) * (1 + TIE_SHARE)
    return min(count for count, seconds in total_s.items() if seconds <= enough_s)


def _unroll(times: StepTimes, more_step_s: float, cadence: Cadence, num_envs: int) -> Work:
    """One unroll of an actor with so many environments. Where steps wait, so do those of further
    environments."""
    env_s = times.mean_s + (num_envs - 1) * more_step_s
    cpu_s = env_s * times.cpu_s / times.mean_s
    length = cadence.unroll_length
    return Work(length * (env_s + INFERENCE_S), length * (cpu_s + INFERENCE_S), strain=1.0)


def _period(
    config: RunConfig,
    cadence: Cadence,
    num_actors: int,
    unroll: Work,
    num_parameters: int,
    num_cores: int,
) -> Period:
    step_s = TRAINED_STEP_S * max(1.0, num_parameters / SMALL_NETWORK)
    version_s = VERSION_S + cadence.trained_steps_per_version * step_s
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


def uneven_note(times: StepTimes | None, config: RunConfig, steps_per_version: int) -> str:
    """What long steps do to a run, in words; empty where there are none.

    An item may be `max_lag` versions behind, so that no version can be made while a step lasts that
    began so many versions ago: one version takes at least longest_s / max_lag.
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
