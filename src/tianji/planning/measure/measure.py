"""Profile one run on this machine: measure what its parts cost, then rehearse the best plans.

    profile = measure(config, config.env, read_machine(), probe(config.env, {}), print)

The costs select the plans that are worth a test run; the test runs show their real speed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tianji.config.machine import Machine
from tianji.config.run import RunConfig
from tianji.costs.profile import Profile
from tianji.engines.spec import RunSpec
from tianji.envs.build import EnvSources, Probe
from tianji.planning.measure.crew import Crew
from tianji.planning.measure.measurement import CostMeasurement
from tianji.planning.measure.remarks import is_disturbed, remarks
from tianji.planning.rehearse.auditions import Auditions
from tianji.planning.resolve.resolve import resolve

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
    if config.engine == "local":
        auditions = Auditions(spec, machine, probe, began_s + limit_s, costs.start_up_s, tell)
        profile = auditions.hold(profile)
    return profile.model_copy(update={"profiling_s": time.monotonic() - began_s})
