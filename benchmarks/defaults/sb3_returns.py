"""One run of Stable-Baselines3 as constructed: its defaults, one environment, one thread.

    python sb3_returns.py ppo CartPole-v1 100000 1       # algorithm, environment, steps, seed

Needs stable-baselines3 and nothing of TianJi. Prints one JSON object.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import metadata
from typing import Any

import gymnasium as gym
import numpy as np
import torch

EPISODES = 20  # as in tasks.py, which needs more than the peers' environment has
FIRST_EVAL_SEED = 10_000


def main() -> None:
    algorithm, env_id, steps, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    from stable_baselines3 import DQN, PPO

    torch.set_num_threads(1)
    started = time.monotonic()
    model = {"ppo": PPO, "dqn": DQN}[algorithm]("MlpPolicy", env_id, seed=seed, device="cpu")
    model.learn(steps)
    wall_s = time.monotonic() - started
    returns = [episode_return(model, env_id, FIRST_EVAL_SEED + i) for i in range(EPISODES)]
    last = [float(info["r"]) for info in model.ep_info_buffer]
    packages = ("stable-baselines3", "torch", "gymnasium", "numpy", "mujoco", "box2d")
    print(
        json.dumps(
            {
                "mean_return": float(np.mean(returns)),
                "returns": returns,
                "mean_return_100": float(np.mean(last)) if last else None,
                "trained_steps": model.num_timesteps,
                "wall_s": wall_s,
                "versions": {name: metadata.version(name) for name in packages},
            }
        )
    )


def episode_return(model: Any, env_id: str, seed: int) -> float:
    env = gym.make(env_id)
    observation, _ = env.reset(seed=seed)
    total, ended = 0.0, False
    while not ended:
        action, _ = model.predict(observation, deterministic=True)
        observation, reward, terminated, truncated, _ = env.step(action)
        total, ended = total + float(reward), terminated or truncated
    env.close()
    return total


if __name__ == "__main__":
    main()
