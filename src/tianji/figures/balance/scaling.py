"""The measurements of figures 6 (a) to (c): DQN on CartPole with a growing number of actors.

Every actor adds the same work: one environment, unrolls of the same length, and as many updates of
the learner as keep the ratio. The algorithm stays in balance at every size, and only the bottleneck
changes.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tianji.config.machine import Machine, read_machine
from tianji.figures.files import Data

if TYPE_CHECKING:
    from tianji.config.run import RunConfig
    from tianji.costs.profile import Profile, Rehearsal

SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14)
PROFILED_ACTORS = 4
SECONDS = 3.0
FIGURES = ("produced", "received", "trained", "lag_versions")
_UNROLL_LENGTH = 256
_SMALL_BATCH = 128


@dataclass(frozen=True, slots=True)
class Scaling:
    """A learner, and its work for every actor."""

    learner_threads: int
    batch_size: int
    updates_per_actor: int

    @property
    def ratio(self) -> float:
        """Return how many transitions are trained on for each one that arrives."""
        return self.batch_size * self.updates_per_actor / _UNROLL_LENGTH

    def config(self, num_actors: int) -> RunConfig:
        from tianji.config.overrides import make_config

        return make_config(
            "cartpole-dqn",
            num_envs=num_actors,
            num_actors=num_actors,
            learner_threads=self.learner_threads,
            actor_threads=1,
            model={"hidden": [256, 256]},
            algorithm={
                "unroll_length": _UNROLL_LENGTH,
                "batch_size": self.batch_size,
                "updates_per_version": self.updates_per_actor * num_actors,
                "n_step": 1,
            },
        )


# The setting of figure 6 (a).
SMALL = Scaling(learner_threads=1, batch_size=_SMALL_BATCH, updates_per_actor=4)


def large(num_cores: int) -> Scaling:
    """Return the setting of figure 6 (b): more learner threads and a proportionally larger batch.

    The ratio stays the same because there are fewer updates.
    """
    threads = 4 if num_cores >= 8 else 2
    return Scaling(threads, _SMALL_BATCH * threads, SMALL.updates_per_actor // threads)


def sizes_for(num_cores: int) -> list[int]:
    """Return the sizes to measure; more than twice as many actors as cores show nothing new."""
    return [size for size in SIZES if size <= 2 * num_cores]


def measure_small() -> Data:
    return _measure(SMALL)


def measure_large() -> Data:
    return _measure(large(len(read_machine().cores)))


def _measure(scaling: Scaling) -> Data:
    """Run every size, and simulate it from one profile."""
    machine = read_machine()
    sizes = sizes_for(len(machine.cores))
    profile = _profile(scaling, machine)
    return {
        "points": [_measure_size(scaling, size) for size in sizes],
        "scaling": {**asdict(scaling), "ratio": scaling.ratio, "unroll_length": _UNROLL_LENGTH},
        "capacity": capacity(scaling, profile),
        "profile": profile.model_dump(mode="json"),
        "simulated": [simulate(scaling, profile, size, len(machine.cores)) for size in sizes],
    }


def _measure_size(scaling: Scaling, num_actors: int) -> dict[str, Any]:
    sys.stderr.write(f"{num_actors} actors ...\n")
    rates = measure_rates(scaling.config(num_actors), SECONDS)
    return {"actors": num_actors, **rates.model_dump(include=set(FIGURES))}


def _profile(scaling: Scaling, machine: Machine) -> Profile:
    from tianji.envs.build import probe
    from tianji.planning.measure.measure import measure

    config = scaling.config(PROFILED_ACTORS)
    found = probe(config.env, config.env_kwargs)
    return measure(config, config.env, machine, found, lambda text: None)


def capacity(scaling: Scaling, profile: Profile) -> dict[str, float]:
    """Return the steps per second of one actor and of the learner if nothing made them wait."""
    (actor,) = [cost for cost in profile.actors if cost.num_envs == 1]
    (learner,) = [cost for cost in profile.learners if cost.threads == scaling.learner_threads]
    return {
        "actor": _UNROLL_LENGTH / actor.unroll.alone_s,
        "learner": profile.steps_per_version / learner.version.alone_s,
    }


def simulate(
    scaling: Scaling, profile: Profile, num_actors: int, num_cores: int, num_groups: int = 1
) -> dict[str, Any]:
    """Run the same size on the virtual clock; rates are sums over the groups."""
    from tianji.virtual.sizes import Size, simulate_size

    size = Size(
        actors_per_node=num_actors,
        envs_per_actor=1,
        learner_threads=scaling.learner_threads,
        cores_per_node=num_cores,
        num_groups=num_groups,
    )
    found = simulate_size(scaling.config(PROFILED_ACTORS), profile, size)
    return {"actors": num_actors, **{name: getattr(found, name) for name in FIGURES}}


def measure_rates(config: RunConfig, seconds: float) -> Rehearsal:
    """Return steady rates in environment steps per second, and the mean lag.

    Settings that are `auto` follow the rule of `resolve`; a comparison sets actors and threads.
    """
    from tianji.engines.spec import RunSpec
    from tianji.envs.build import probe
    from tianji.planning.rehearse.rehearsal import rehearse
    from tianji.planning.resolve.resolve import resolve

    found = probe(config.env, config.env_kwargs)
    plan = resolve(config, read_machine(), found)
    return rehearse(RunSpec(config, plan, found.spaces, config.env, Path()), seconds)
