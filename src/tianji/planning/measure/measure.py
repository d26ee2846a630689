"""Profile one run on this machine: measure what its parts cost, then rehearse the best plans.

    profile = measure(config, config.env, read_machine(), probe(config.env, {}), print)

The costs select the plans that are worth a test run; the test runs show their real speed.
`remarks` tells about slow, uneven or memory-hungry environments, and about a noisy machine.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tianji.config.machine import Machine
from tianji.config.run import RunConfig
from tianji.costs.profile import Cost, Profile
from tianji.engines.spec import RunSpec
from tianji.envs.build import EnvSources, Probe
from tianji.planning.measure.crew import Crew
from tianji.planning.measure.measurement import CostMeasurement, Point
from tianji.planning.rehearse.auditions import Auditions
from tianji.planning.resolve.resolve import resolve
from tianji.wording import to_percent

LIMIT_S = 42.0
COSTS_SHARE = 0.45  # of that time; the rest is for rehearsals


def measure(
    config: RunConfig,
    env: EnvSources,
    machine: Machine,
    probe: Probe,
    tell: Callable[[str], None],
    settings: Mapping[str, int] | None = None,
    limit_s: float = LIMIT_S,
) -> Profile:
    """Return the profile of a run; `tell` gets sentences about the progress.

    What has not begun after `limit_s` is left out, rehearsals first. Raises WorkerLost if the
    environment fails; KeyboardInterrupt leaves nothing behind.
    """
    began_s = time.monotonic()
    spec = RunSpec(config, resolve(config, machine, probe), probe.spaces, env, Path())
    with Crew(spec) as crew:
        costs = CostMeasurement(crew, machine, probe, began_s + COSTS_SHARE * limit_s, tell)
        costs.run()
    points = costs.points
    actors = [point.cost for point in points]
    learners = [cost for _, cost in sorted(costs.learners.items())]
    profile = Profile(
        settings=dict(settings or {}),
        num_cores=len(machine.cores),
        steps_per_version=spec.plan.unrolls_per_version * spec.plan.steps_per_unroll,
        actors=tuple(sorted(actors, key=lambda cost: (cost.num_envs, cost.threads))),
        learners=tuple(learners),
        send_s=statistics.median(point.alone.send_s for point in points),
        policy_bytes=costs.policy_bytes,
        unroll_bytes=max(point.plan.slot_bytes for point in points),
        is_disturbed=is_disturbed(points),
        warnings=remarks(points, [*(a.unroll for a in actors), *(x.version for x in learners)]),
    )
    if config.has_processes:
        auditions = Auditions(spec, machine, probe, began_s + limit_s, costs.start_up_s, tell)
        profile = auditions.hold(profile)
    return profile.model_copy(update={"profiling_s": time.monotonic() - began_s})


SLOW_STEP_S = 0.005
SLOW_RESET_S = 0.001  # a shorter reset does no harm, whatever its factor
UNEVEN = 5.0
HUNGRY_BYTES = 100 << 20
NOISY = 0.10
BUSY = 0.10


def remarks(points: Sequence[Point], costs: Sequence[Cost]) -> tuple[str, ...]:
    """Return what a person should know about the environment and the machine."""
    seen = min(points, key=lambda point: point.plan.envs_per_actor).alone
    uneven, env_bytes = seen.cost.unevenness, memory_per_environment(points)
    busy, noise = _disturbed_share(points), max(cost.noise for cost in costs)
    is_slow_reset = seen.reset_factor > UNEVEN and seen.step_s * seen.reset_factor >= SLOW_RESET_S
    found = (
        seen.step_s > SLOW_STEP_S
        and f"The environment is slow: one step takes {seen.step_s * 1e3:.0f} ms, so one actor "
        f"makes at most {1 / seen.step_s:,.0f} steps/s.",
        uneven > UNEVEN
        and f"Step times vary: one step in a hundred takes {uneven:.0f} times as long as usual, "
        "and the other environments of the same actor wait for it.",
        is_slow_reset
        and f"Resets are slow: a step that includes a reset takes {seen.reset_factor:.0f} times "
        "as long as one that does not.",
        env_bytes > HUNGRY_BYTES
        and f"Each environment takes much memory: {env_bytes / 2**20:,.0f} MiB.",
        busy > BUSY
        and "Other programs use this machine: a process that was measured alone waited for a core "
        f"{to_percent(busy)} of the time. Measured costs exclude that; the predicted rate does "
        "not.",
        noise > NOISY
        and f"The measurement is noisy: numbers vary by +-{to_percent(noise)}. Measure again when "
        "no other program uses the machine.",
    )
    return tuple(sentence for sentence in found if sentence)


def is_disturbed(points: Sequence[Point]) -> bool:
    """Return whether other programs used the machine during the measurement."""
    return _disturbed_share(points) > BUSY


def _disturbed_share(points: Sequence[Point]) -> float:
    return statistics.median(point.alone.disturbed_share for point in points)


def memory_per_environment(points: Sequence[Point]) -> float:
    """Return how much memory each further environment takes; with one point, each at all."""
    few, *_, many = sorted([points[0], *points], key=lambda point: point.plan.envs_per_actor)
    more = many.plan.envs_per_actor - few.plan.envs_per_actor
    if more == 0:
        return few.built.grown_bytes / few.plan.envs_per_actor
    return (many.built.memory_bytes - few.built.memory_bytes) / more
