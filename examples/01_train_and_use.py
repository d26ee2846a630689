"""Train a policy, use it at once, and load it again later.

python 01_train_and_use.py
"""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym

import tianji


def play(policy: Any) -> float:
    """One episode of CartPole in an ordinary Gymnasium loop."""
    env = gym.make("CartPole-v1")
    observation, _ = env.reset(seed=7)
    total, over = 0.0, False
    while not over:
        observation, reward, terminated, truncated, _ = env.step(policy.act(observation))
        total += float(reward)
        over = terminated or truncated
    return total


if __name__ == "__main__":
    max_env_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    summary, policy = tianji.train(
        "cartpole-ppo", target_return=300, max_env_steps=max_env_steps, seed=3
    )
    print(f"stopped because: {summary['stopped_because']}")
    print(f"return of one episode, greedy: {play(policy):.0f}")

    # Another day, another script: by the name under runs/, or by path.
    again = tianji.load(summary["run_dir"], checkpoint="latest")
    assert again.version == policy.version
    assert play(again) == play(policy)
    print(f"the same policy again, from {again.checkpoint}")
