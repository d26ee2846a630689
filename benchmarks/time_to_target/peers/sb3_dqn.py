"""Stable-Baselines3 DQN on CartPole-v1 with the tuned numbers of rl-zoo3, all its 50,000 steps.

.peers/bin/python benchmarks/time_to_target/peers/sb3_dqn.py --seed 1
"""

from __future__ import annotations

import time

PROCESS_STARTED = time.perf_counter()

import argparse  # noqa: E402

import torch  # noqa: E402
from sb3_run import learn  # noqa: E402
from stable_baselines3 import DQN  # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--max-s", type=float, default=240.0)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    model = DQN(
        "MlpPolicy",
        make_vec_env("CartPole-v1", n_envs=1, seed=args.seed),
        learning_rate=2.3e-3,
        batch_size=64,
        buffer_size=100_000,
        learning_starts=1000,
        gamma=0.99,
        target_update_interval=10,
        train_freq=256,
        gradient_steps=128,
        exploration_fraction=0.16,
        exploration_final_eps=0.04,
        policy_kwargs={"net_arch": [256, 256]},
        seed=args.seed,
        device="cpu",
    )
    learn(
        model,
        args.steps,
        [300.0],
        stop_when_reached=False,
        max_s=args.max_s,
        process_started=PROCESS_STARTED,
        settings={"source": "rl-zoo3 dqn CartPole-v1", "threads": args.threads},
    )


if __name__ == "__main__":
    main()
