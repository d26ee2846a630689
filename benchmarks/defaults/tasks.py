"""The tasks, their lengths, and what counts as passed.

python -m benchmarks.defaults.tasks       what random actions reach
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import gymnasium as gym

SEEDS = (1, 2, 3)
EPISODES = 20
FIRST_EVAL_SEED = 10_000
LOST_SHARE = 0.05
"""A task is passed by whoever loses at most this share of what the peer gained over random."""


@dataclass(frozen=True)
class Job:
    """One run."""

    contestant: str
    algorithm: str
    env: str
    env_steps: int
    seed: int


@dataclass(frozen=True)
class Task:
    """An environment and how long each algorithm trains on it."""

    env: str
    steps: Mapping[str, int]
    random: float
    """Mean return of random actions over 100 episodes."""
    floor: float = float("-inf")
    """The return of doing nothing, where that is better than random actions."""


def _policies(steps: int, dqn: int | None = None) -> dict[str, int]:
    return {"ppo": steps, "impala": steps} | ({} if dqn is None else {"dqn": dqn})


TASKS = (
    Task("CartPole-v1", _policies(100_000, dqn=100_000), 21.39),
    Task("MountainCarContinuous-v0", _policies(100_000), -33.25, floor=0.0),
    Task("Acrobot-v1", _policies(200_000, dqn=200_000), -497.52),
    Task("Pendulum-v1", _policies(200_000), -1166.44),
    Task("LunarLander-v3", _policies(500_000, dqn=200_000), -194.27),
    Task("LunarLanderContinuous-v3", _policies(500_000), -220.71),
    Task("Hopper-v5", _policies(500_000), 19.26),
    Task("HalfCheetah-v5", _policies(500_000), -278.79),
    Task("MountainCar-v0", _policies(200_000, dqn=200_000), -200.0),
    Task("BipedalWalker-v3", _policies(200_000), -99.9, floor=-91.94),
    Task("Walker2d-v5", _policies(200_000), 1.49, floor=92.58),
    Task("Ant-v5", _policies(200_000), -51.24, floor=994.87),
)


def keeps_up(task: Task, ours: float, theirs: float) -> bool:
    """Return whether ours is at least the peer's return minus 5 % of its gain over random."""
    return ours >= theirs - LOST_SHARE * (theirs - task.random)


def is_passed(task: Task, ours: float, theirs: float) -> bool:
    """Return whether ours keeps up and the task was learnt: where both stay at the floor nobody
    passes."""
    gained = abs(LOST_SHARE * (theirs - task.random))
    if max(ours, theirs) <= max(task.random, task.floor) + gained:
        return False
    return keeps_up(task, ours, theirs)


def main() -> None:
    for task in TASKS:
        env = gym.make(task.env)
        env.action_space.seed(0)
        total, episodes = 0.0, 100
        for i in range(episodes):
            env.reset(seed=FIRST_EVAL_SEED + i)
            ended = False
            while not ended:
                _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
                total, ended = total + float(reward), terminated or truncated
        print(f"{task.env}: {total / episodes:.2f}")


if __name__ == "__main__":
    main()
