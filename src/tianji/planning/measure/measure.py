"""Profile one run on this machine: what its parts cost, then a rehearsal of the best plans.

    profile = measure(config, config.env, read_machine(), probe(config.env, {}), print)

Costs say which plans are worth trying; the rehearsals say how fast those really are.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tianji.config.machine import Machine
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.costs.profile import ActorCost, Cost, LearnerCost, Profile
from tianji.engines.spec import RunSpec
from tianji.envs.build import EnvSources, Probe
from tianji.planning.measure.choices import is_waiting
from tianji.planning.measure.crew import Crew
from tianji.planning.measure.measurement import Costs, Learned, Point
from tianji.planning.measure.remarks import is_disturbed, remarks
from tianji.planning.rehearse.auditions import Auditions
from tianji.planning.resolve.resolve import resolve

LIMIT_S = 42.0
COSTS_SHARE = 0.45
"""Of that time, what costs may take; the rest is for rehearsals."""


def measure(
    config: RunConfig,
    env: EnvSources,
    machine: Machine,
    probe: Probe,
    tell: Callable[[str], None],
    settings: Mapping[str, int] | None = None,
    limit_s: float = LIMIT_S,
) -> Profile:
    """Everything that a plan needs to know. `tell` gets sentences for people on the way; what is
    not begun `limit_s` from now is left out, rehearsals first.

    WorkerLost where the environment fails; KeyboardInterrupt leaves nothing behind.
    """
    began_s = time.monotonic()
    spec = RunSpec(config, resolve(config, machine, probe), probe.spaces, env, Path())
    with Crew(spec) as crew:
        costs = Costs(crew, machine, probe, began_s + COSTS_SHARE * limit_s, tell)
        costs.measure()
    profile = _profile_of(costs, spec.plan)
    if config.engine == "local":
        auditions = Auditions(spec, machine, probe, began_s + limit_s, costs.start_up_s, tell)
        profile = auditions.hold(profile)
    facts = {
        "settings": dict(settings or {}),
        "num_cores": len(machine.cores),
        "profiling_s": time.monotonic() - began_s,
    }
    return profile.model_copy(update=facts)


def _profile_of(costs: Costs, plan: RunPlan) -> Profile:
    points = costs.points
    actors = sorted(map(_actor_cost, points), key=lambda cost: (cost.num_envs, cost.threads))
    learners = [_learner_cost(*entry) for entry in sorted(costs.learners.items())]
    return Profile(
        steps_per_version=plan.unrolls_per_version * plan.steps_per_unroll,
        actors=tuple(actors),
        learners=tuple(learners),
        send_s=statistics.median(point.alone.send_s for point in points),
        policy_bytes=costs.policy_bytes,
        unroll_bytes=max(point.plan.slot_bytes for point in points),
        is_disturbed=is_disturbed(points),
        warnings=remarks(points, actors, learners),
    )


def _actor_cost(point: Point) -> ActorCost:
    alone = point.alone
    loaded = [reading.unroll_s for reading in point.loaded]
    if not loaded or is_waiting(alone.unroll_s, alone.cpu_s):
        loaded = [alone.unroll_s]  # a wait takes as long, whatever others do
    return ActorCost(
        num_envs=point.plan.envs_per_actor,
        threads=point.plan.actor_threads,
        unroll=Cost(
            alone_s=alone.unroll_s,
            loaded_s=statistics.median(loaded),
            cpu_s=alone.cpu_s,
            noise=alone.noise,
        ),
        environment_share=alone.environment_share,
        unevenness=alone.unevenness,
        memory_bytes=alone.memory_bytes,
    )


def _learner_cost(threads: int, learned: Learned) -> LearnerCost:
    alone, loaded = learned.alone, learned.loaded or learned.alone
    return LearnerCost(
        threads=threads,
        version=Cost(
            alone_s=alone.version_s,
            loaded_s=loaded.version_s,
            cpu_s=alone.cpu_s,
            noise=alone.noise,
        ),
        update_s=alone.update_s,
        receive_s=alone.receive_s,
        publish_s=alone.publish_s,
        memory_bytes=alone.memory_bytes,
    )
