"""What is planned: combinations of algorithm, environment and network, and the grid around each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tianji.algorithms.registry import load_algorithm
from tianji.api import make_config
from tianji.config.run import RunConfig

FEWEST_MOST_ACTORS = 8  # a grid goes at least as far, however few the cores
MANY_CORES = 4
SPARE = 2  # with many cores, workers beyond these and the cores are known to be in each other's way


class Mapped(NamedTuple):
    """One way to share out the machine."""

    num_actors: int
    learner_threads: int
    actor_threads: int = 1

    def __str__(self) -> str:
        return f"{self.num_actors} x {self.learner_threads}"


@dataclass(frozen=True)
class Combination:
    """A preset with some settings changed."""

    name: str
    preset: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    most_actors: int = FEWEST_MOST_ACTORS

    def config(self, mapped: Mapped | None = None) -> RunConfig:
        fixed = mapped._asdict() if mapped else {}
        return make_config(self.preset, **self.settings, **fixed)

    def ratio(self) -> float:
        """Items taken per item put, as the algorithm's serial form has it."""
        config = self.config()
        return load_algorithm(config.algorithm.name).cadence(config).ratio

    def options(self) -> list[str]:
        """The same settings as words of a command line."""
        found = []
        for path, value in self.settings.items():
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            found += [f"--{path}", text]
        return found

    def grid(self, cores: int) -> list[Mapped]:
        """Every way to share the environments out to so many actors, and powers of two threads."""
        num_envs = self.config().num_envs
        most = max(self.most_actors, cores)
        actors = [n for n in range(1, most + 1) if num_envs % n == 0]
        threads = [1 << power for power in range(8) if 1 << power <= max(2, cores // 2)]
        found = [Mapped(n, k) for n in actors for k in threads]
        if cores <= MANY_CORES:
            return found
        return [point for point in found if sum(point[:2]) <= max(cores, self.most_actors) + SPARE]


WIDE = {"model.hidden": [256, 256]}
COMBINATIONS = (
    Combination("cartpole-ppo", "cartpole-ppo"),
    Combination("cartpole-dqn", "cartpole-dqn"),
    Combination("cartpole-impala", "cartpole-impala"),
    Combination("acrobot-ppo-wide", "acrobot-ppo", WIDE),
    Combination("lunarlander-dqn", "lunarlander-dqn"),  # 256 x 256 as it is
    Combination("hopper-ppo", "hopper-ppo"),
    Combination(
        "waiting-ppo",
        "cartpole-ppo",
        {
            "env": "benchmarks.plan_grid.waiting:make",
            "num_envs": 16,
            "algorithm.unroll_length": 16,
        },
        most_actors=16,
    ),
)


def num_cores() -> int:
    return len(os.sched_getaffinity(0))
