"""Stable-Baselines3 PPO on CartPole-v1 with the tuned numbers of rl-zoo3.

.peers/bin/python benchmarks/time_to_target/peers/sb3_ppo.py --seed 1 --targets 300 475
"""

from __future__ import annotations

import time

PROCESS_STARTED = time.perf_counter()

import argparse  # noqa: E402

import torch  # noqa: E402
from sb3_run import learn  # noqa: E402
from stable_baselines3 import PPO  # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402

TOTAL_STEPS = 100_000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--targets", type=float, nargs="+", default=[300.0, 475.0])
    parser.add_argument("--max-s", type=float, default=60.0)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    model = PPO(
        "MlpPolicy",
        make_vec_env("CartPole-v1", n_envs=8, seed=args.seed),
        n_steps=32,
        batch_size=256,
        n_epochs=20,
        gae_lambda=0.8,
        gamma=0.98,
        ent_coef=0.0,
        learning_rate=lambda left: 1e-3 * left,
        clip_range=lambda left: 0.2 * left,
        seed=args.seed,
        device="cpu",
    )
    learn(
        model,
        TOTAL_STEPS,
        args.targets,
        stop_when_reached=True,
        max_s=args.max_s,
        process_started=PROCESS_STARTED,
        settings={"source": "rl-zoo3 ppo CartPole-v1", "threads": args.threads},
    )


if __name__ == "__main__":
    main()
