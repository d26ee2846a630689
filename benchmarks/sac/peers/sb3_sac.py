"""Stable-Baselines3's SAC.train() on a replay buffer of made-up steps; prints one JSON line.

.peers/bin/python benchmarks/sac/peers/sb3_sac.py --obs 17 --numbers 6 --seconds 2 --threads 2
"""

from __future__ import annotations

import argparse
import json
import time
from importlib import metadata
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import SAC
from stable_baselines3.common.logger import configure

NUM_STEPS = 5000
UPDATES_AT_ONCE = 32


class Noise(gym.Env[Any, Any]):
    """Spaces of the sizes asked for; its steps are never made."""

    def __init__(self, num_obs: int, num_numbers: int) -> None:
        self.observation_space = gym.spaces.Box(-10.0, 10.0, (num_obs,), np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (num_numbers,), np.float32)


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--obs", type=int, required=True)
    made.add_argument("--numbers", type=int, required=True)
    made.add_argument("--batch-size", type=int, default=256)
    made.add_argument("--seconds", type=float, default=2.0)
    made.add_argument("--threads", type=int, default=1)
    made.add_argument("--device", default="cpu")
    args = made.parse_args()
    torch.set_num_threads(args.threads)
    model = SAC(
        "MlpPolicy", Noise(args.obs, args.numbers), batch_size=args.batch_size,
        buffer_size=NUM_STEPS, device=args.device, learning_rate=1e-6,
    )  # fmt: skip
    model.set_logger(configure(None, []))
    rng = np.random.default_rng(0)
    for _ in range(NUM_STEPS):
        obs, following = rng.standard_normal((2, 1, args.obs)).astype(np.float32)
        action = rng.uniform(-1.0, 1.0, (1, args.numbers)).astype(np.float32)
        reward = rng.standard_normal(1).astype(np.float32)
        model.replay_buffer.add(obs, following, action, reward, np.zeros(1), [{}])
    model.train(UPDATES_AT_ONCE, args.batch_size)
    updates, started = 0, time.perf_counter()
    while time.perf_counter() - started < args.seconds:
        model.train(UPDATES_AT_ONCE, args.batch_size)
        updates += UPDATES_AT_ONCE
    if args.device != "cpu":
        torch.cuda.synchronize()
    rate = updates / (time.perf_counter() - started)
    versions = {name: metadata.version(name) for name in ("stable-baselines3", "torch")}
    print(json.dumps({"updates_per_s": rate, "versions": versions}))


if __name__ == "__main__":
    main()
