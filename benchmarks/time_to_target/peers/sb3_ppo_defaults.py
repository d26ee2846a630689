"""Stable-Baselines3 PPO on CartPole-v1 as constructed: its defaults, one environment.

.peers/bin/python benchmarks/time_to_target/peers/sb3_ppo_defaults.py --seed 1
"""

from __future__ import annotations

import time

PROCESS_STARTED = time.perf_counter()

import argparse  # noqa: E402

import torch  # noqa: E402
from sb3_run import learn  # noqa: E402
from stable_baselines3 import PPO  # noqa: E402

TOTAL_STEPS = 1_000_000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--max-s", type=float, default=240.0)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    learn(
        PPO("MlpPolicy", "CartPole-v1", seed=args.seed, device="cpu"),
        TOTAL_STEPS,
        [475.0],
        stop_when_reached=True,
        max_s=args.max_s,
        process_started=PROCESS_STARTED,
        settings={"source": "Stable-Baselines3's defaults", "threads": args.threads},
    )


if __name__ == "__main__":
    main()
