"""RunSpec: the input from which every worker of a run starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.envs.build import EnvSource, EnvSources, to_tasks
from tianji.envs.interface import Spaces


@dataclass(frozen=True, slots=True)
class RunSpec:
    """The config, the plan derived from it, and the environment with its spaces."""

    config: RunConfig
    plan: RunPlan
    spaces: Spaces
    env: EnvSources
    """The environment: config.env, or the callable that was given instead; a tuple where actors
    have different ones (config.envs)."""
    run_dir: Path
    """Folder of the run; of the group, where there are several."""
    group: int = 0
    """Number of the learner with its buffer and actors, of config.num_learners; that of the group,
    where each has one learner."""
    has_head: bool = False
    """A head merges the groups and decides when the run is over."""
    start_from: Path | None = None
    """The checkpoint that a resume continues from; None: the newest in the folder."""
    address: str = ""
    """Where learners on other hosts reach this host; empty: there are none."""
    reports_episodes: bool = False
    """A callback takes the episodes."""

    def env_of(self, actor: int) -> EnvSource:
        """Return the environment of one actor."""
        return self.env[actor % len(self.env)] if isinstance(self.env, tuple) else self.env

    def number_of(self, actor: int) -> int:
        """Return the number of an actor of this group, counted over all groups."""
        return self.group * self.plan.num_actors + actor

    @property
    def tasks(self) -> dict[str, EnvSource]:
        """All environments by name."""
        return to_tasks(self.config.tasks, self.env)
