"""What is run for real and simulated: one group's settings, its shares, and its profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.harness import say
from tianji.config.machine import Machine
from tianji.config.overrides import preset_and_assignments, resolve
from tianji.config.run import Combine, RunConfig
from tianji.costs.profile import Profile
from tianji.envs.build import probe
from tianji.planning.measure.measure import measure
from tianji.planning.resolve.resolve import resolve as resolve_plan
from tianji.virtual.simulate import Simulated
from tianji.virtual.sizes import Size, simulate_size

SLEEPING = "sleeping"
# Two actors of one environment each: a version of 32 steps takes 80 ms, whatever else happens.
_SLEEPING_WORDS = (
    *("cartpole-ppo", "--env", "benchmarks.groups_simulated.sleeping:make_env"),
    *("--num-envs", "2", "--num-actors", "2", "--unroll-length", "16", "--minibatch-size", "16"),
)
VERSIONS = 200


@dataclass(frozen=True, slots=True)
class Task:
    """One group: its words on a command line, its config with shares, and what its parts cost."""

    name: str
    words: tuple[str, ...]
    config: RunConfig
    learner_threads: int
    actor_threads: int
    profile: Profile

    @property
    def num_actors(self) -> int:
        assert self.config.num_actors != "auto"
        return self.config.num_actors

    @property
    def steps_per_version(self) -> int:
        return self.profile.steps_per_version

    def simulated(
        self, num_groups: int, combine: Combine, cores_per_host: int, num_hosts: int
    ) -> Simulated:
        """Simulate groups on so many hosts."""
        size = Size(
            actors_per_node=self.num_actors,
            envs_per_actor=self.config.num_envs // self.num_actors,
            cores_per_node=cores_per_host,
            learner_threads=self.learner_threads,
            actor_threads=self.actor_threads,
            num_groups=num_groups,
            groups_per_node=-(-num_groups // num_hosts),
            combine=combine,
            num_versions=VERSIONS,
        )
        return simulate_size(self.config, self.profile, size)


def make_task(name: str, share: Machine) -> Task:
    """Share out the cores of one group by rule, as the real runs do, and measure its parts."""
    asked = _SLEEPING_WORDS if name == SLEEPING else (name,)
    config = resolve(*preset_and_assignments(asked)).config
    found = probe(config.env, config.env_kwargs, timed=True)
    plan = resolve_plan(config, share, found)
    shares = {
        "num_actors": plan.num_actors,
        "learner_threads": plan.learner_threads,
        "actor_threads": plan.actor_threads,
    }
    config = config.model_copy(update=shares)
    say(f"{name}: measuring the parts")
    profile = measure(config, config.env, share, found, say)
    words = [*asked]
    for setting, value in shares.items():
        words += [f"--{setting.replace('_', '-')}", str(value)]
    return Task(
        name=name,
        words=tuple(words),
        config=config,
        learner_threads=plan.learner_threads,
        actor_threads=plan.actor_threads,
        profile=profile,
    )


def group_words(num_groups: int, combine: Combine) -> Sequence[str]:
    """Return the words that make a run of several groups."""
    if num_groups == 1:
        return ()
    return ("--num-groups", str(num_groups), "--combine", combine)
