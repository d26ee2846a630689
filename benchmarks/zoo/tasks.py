"""The rows of the zoo: which preset trains for how long, and what random actions reach.

Lengths are what RL Zoo says where that is short, and less than it elsewhere: a row of the zoo shows
which of two learns more from equal steps, not how good one can become.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.defaults import tasks as defaults

OUR_SEEDS = (1, 2, 3, 4, 5)
PEER_SEEDS = (1, 2, 3)
WALL_TIME_STEPS = 20_000
WALL_TIME_TURNS = (1, 2, 3)

TASKS = {task.env: task for task in defaults.TASKS} | {
    "tianji.envs.remembering:PositionsOfCartPole": defaults.Task(
        "tianji.envs.remembering:PositionsOfCartPole", {}, 21.39
    ),
    "tianji.envs.remembering:TMaze": defaults.Task("tianji.envs.remembering:TMaze", {}, -1.97),
    "tianji.envs.doors:Doors": defaults.Task("tianji.envs.doors:Doors", {}, 2.67),
}
"""By environment; random actions on the doors are legal ones."""


def is_our_own(env: str) -> bool:
    """Return whether an environment comes with TianJi; the peer does not have it."""
    return ":" in env


@dataclass(frozen=True)
class Row:
    """One preset of ours and how many steps it trains for; the peer gets as many."""

    preset: str
    env: str
    algorithm: str
    env_steps: int
    has_peer: bool = True
    """Whether Stable-Baselines3 has this algorithm, and RL Zoo numbers for it."""

    @property
    def task(self) -> defaults.Task:
        """Return what random actions and doing nothing reach."""
        return TASKS[self.env]


ROWS = (
    Row("cartpole-ppo", "CartPole-v1", "ppo", 100_000),
    Row("acrobot-ppo", "Acrobot-v1", "ppo", 200_000),
    Row("mountaincar-ppo", "MountainCar-v0", "ppo", 200_000),
    Row("mountaincarcontinuous-ppo", "MountainCarContinuous-v0", "ppo", 50_000),
    Row("pendulum-ppo", "Pendulum-v1", "ppo", 100_000),
    Row("lunarlander-ppo", "LunarLander-v3", "ppo", 212_992),
    Row("lunarlandercontinuous-ppo", "LunarLanderContinuous-v3", "ppo", 212_992),
    Row("bipedalwalker-ppo", "BipedalWalker-v3", "ppo", 196_608),
    Row("hopper-ppo", "Hopper-v5", "ppo", 150_000),
    Row("halfcheetah-ppo", "HalfCheetah-v5", "ppo", 150_000),
    Row("walker2d-ppo", "Walker2d-v5", "ppo", 150_000),
    Row("ant-ppo", "Ant-v5", "ppo", 150_000),
    Row("cartpole-dqn", "CartPole-v1", "dqn", 50_000),
    Row("acrobot-dqn", "Acrobot-v1", "dqn", 50_000),
    Row("mountaincar-dqn", "MountainCar-v0", "dqn", 120_000),
    Row("lunarlander-dqn", "LunarLander-v3", "dqn", 100_000),
    Row("pendulum-sac", "Pendulum-v1", "sac", 10_000),
    Row("mountaincarcontinuous-sac", "MountainCarContinuous-v0", "sac", 20_000),
    Row("lunarlandercontinuous-sac", "LunarLanderContinuous-v3", "sac", 20_000),
    Row("bipedalwalker-sac", "BipedalWalker-v3", "sac", 50_000),
    Row("hopper-sac", "Hopper-v5", "sac", 20_000),
    Row("halfcheetah-sac", "HalfCheetah-v5", "sac", 20_000),
    Row("walker2d-sac", "Walker2d-v5", "sac", 20_000),
    Row("ant-sac", "Ant-v5", "sac", 50_000),
    Row("cartpole-impala", "CartPole-v1", "impala", 100_000, has_peer=False),
    Row("acrobot-impala", "Acrobot-v1", "impala", 200_000, has_peer=False),
    Row("lunarlander-impala", "LunarLander-v3", "impala", 212_992, has_peer=False),
    Row(
        "cartpole-memory-ppo",
        "tianji.envs.remembering:PositionsOfCartPole",
        "ppo",
        300_000,
        has_peer=False,
    ),
    Row("tmaze-memory-ppo", "tianji.envs.remembering:TMaze", "ppo", 300_000, has_peer=False),
    Row("doors-masked-ppo", "tianji.envs.doors:Doors", "ppo", 50_000, has_peer=False),
)


@dataclass(frozen=True)
class Job:
    """One run."""

    contestant: str
    row: Row
    seed: int

    @property
    def name(self) -> str:
        return f"{self.contestant}-{self.row.preset}-{self.seed}"


def jobs() -> list[Job]:
    """Return all runs: the first seed of everything, then the second, and so on, so that the table
    is even whenever one looks."""
    return [
        Job(contestant, row, seed)
        for seed in OUR_SEEDS
        for row in ROWS
        for contestant in ("sb3", "tianji")
        if contestant == "tianji" or (row.has_peer and seed in PEER_SEEDS)
    ]


def wall_time_jobs() -> list[Job]:
    """Return short runs in turn, one contestant after the other, for rows that have a peer."""
    rows = [row for row in ROWS if row.has_peer]
    return [
        Job(contestant, shortened(row), turn)
        for turn in WALL_TIME_TURNS
        for row in rows
        for contestant in ("sb3", "tianji")
    ]


def shortened(row: Row) -> Row:
    """Return a row as it is timed."""
    return replace(row, env_steps=WALL_TIME_STEPS)
