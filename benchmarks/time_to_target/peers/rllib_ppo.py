"""RLlib PPO on CartPole-v1 with the numbers of its own CartPole example (new API stack).

    .peers/bin/python benchmarks/time_to_target/peers/rllib_ppo.py --seed 1 --targets 300

RLlib's own `episode_return_mean` is not a mean over the last 100 episodes, so every environment
runner writes the episodes it finishes to a file, with the time they finished: CLOCK_MONOTONIC is
the same in all processes of a machine. The length is `episode.t`, which spans the chunks that
rollout fragments cut an episode into (`get_return()` sees the last chunk only), and in CartPole
the length is the return.
"""

from __future__ import annotations

import time

PROCESS_STARTED = time.monotonic()

import argparse  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import tempfile  # noqa: E402
from importlib import metadata  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import ray  # noqa: E402
from last_hundred import LastHundred  # noqa: E402
from ray.rllib.algorithms.ppo import PPOConfig  # noqa: E402
from ray.rllib.callbacks.callbacks import RLlibCallback  # noqa: E402
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig  # noqa: E402


def episode_log(folder: str) -> type[RLlibCallback]:
    class EpisodeLog(RLlibCallback):
        def on_episode_end(self, *, episode: Any, **_: Any) -> None:
            with open(os.path.join(folder, str(os.getpid())), "a") as log:
                log.write(f"{time.monotonic()} {episode.t}\n")

    return EpisodeLog


def config(args: argparse.Namespace, folder: str) -> PPOConfig:
    return (
        PPOConfig()
        .environment("CartPole-v1")
        .env_runners(num_env_runners=args.runners, num_envs_per_env_runner=args.envs_per_runner)
        .learners(num_learners=args.learners)
        .training(lr=3e-4, num_epochs=6, train_batch_size_per_learner=4000, vf_loss_coeff=0.01)
        .rl_module(
            model_config=DefaultModelConfig(
                fcnet_hiddens=[32], fcnet_activation="linear", vf_share_layers=True
            )
        )
        .callbacks(episode_log(folder))
        .debugging(seed=args.seed, log_level="ERROR")
    )


def replay(folder: str, targets: list[float], started: float) -> tuple[LastHundred, int]:
    """All episodes so far, of all runners, in the order they finished."""
    episodes = sorted(
        (float(at), int(length))
        for path in Path(folder).iterdir()
        for at, length in (line.split() for line in path.read_text().splitlines())
    )
    counter, env_steps = LastHundred(targets), 0
    for at, length in episodes:
        env_steps += length
        counter.add(float(length), at - started, env_steps)
    return counter, env_steps


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runners", type=int, default=2)
    parser.add_argument("--envs-per-runner", type=int, default=1)
    parser.add_argument("--learners", type=int, default=0, help="0: in the driver's process")
    parser.add_argument("--targets", type=float, nargs="+", default=[300.0])
    parser.add_argument("--max-s", type=float, default=90.0)
    args = parser.parse_args()
    # More logical CPUs than cores, so that Ray places every actor; they share the real cores.
    ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    with tempfile.TemporaryDirectory(prefix="episodes-") as folder:
        algorithm = config(args, folder).build_algo()
        started = time.monotonic()
        counter, env_steps, own_reached = LastHundred(args.targets), 0, {}
        while not counter.all_reached and time.monotonic() - started < args.max_s:
            result = algorithm.train()
            elapsed = time.monotonic() - started
            own = result["env_runners"].get("episode_return_mean", 0.0)
            for target in args.targets:
                if own >= target:
                    own_reached.setdefault(f"own_time_to_{target:g}_s", elapsed)
            counter, env_steps = replay(folder, args.targets, started)
        wall_s = time.monotonic() - started
        algorithm.stop()
    ray.shutdown()
    print(
        json.dumps(
            {
                "start_up_s": started - PROCESS_STARTED,
                "wall_s": wall_s,
                "env_steps": env_steps,
                "steps_per_s": env_steps / wall_s,
                **counter.figures(),
                **own_reached,
                "settings": {
                    "source": "RLlib examples/algorithms/ppo/cartpole_ppo.py",
                    "runners": args.runners,
                    "envs_per_runner": args.envs_per_runner,
                    "learners": args.learners,
                },
                "versions": {
                    name: metadata.version(name) for name in ("ray", "torch", "gymnasium", "numpy")
                },
            }
        )
    )


if __name__ == "__main__":
    main()
