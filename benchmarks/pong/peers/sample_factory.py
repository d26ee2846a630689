"""Sample Factory's PPO on Pong with the defaults of sf_examples.atari, synchronous or not.

.peers/sample-factory/bin/python -m benchmarks.pong.peers.sample_factory --seconds 60 --mode async
"""

from __future__ import annotations

from benchmarks.pong.peers.turn import Turn  # first: it notes when the process started

# isort: split
import argparse
import sys
import tempfile
from typing import Any

import ale_py  # noqa: F401  registers the environments
from sample_factory.algo.runners.runner import AlgoObserver
from sample_factory.train import make_runner
from sf_examples.atari.train_atari import parse_atari_args, register_atari_components

WORKERS = 2
FRAME_SKIP = 4


class _Marks(AlgoObserver):
    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    def on_start(self, runner: Any) -> None:
        self._turn.start()

    def on_training_step(self, runner: Any, training_iteration_since_resume: int) -> None:
        """Note the steps that the learner has taken; the runner counts emulator frames."""
        self._turn.mark(sum(runner.env_steps.values()) // FRAME_SKIP)
        runner.total_train_seconds = self._turn.elapsed_s  # 2.1.1 compares it, but never sets it


def options(args: argparse.Namespace, folder: str) -> list[str]:
    is_async = args.mode == "async"
    chosen = {
        "env": "atari_pong",
        "experiment": "pong",
        "train_dir": folder,
        "device": "cpu",
        "seed": args.seed,
        "num_workers": WORKERS,
        "num_envs_per_worker": args.num_envs // WORKERS,
        "worker_num_splits": 2 if is_async else 1,
        "async_rl": is_async,
        "rollout": args.num_steps,
        "batch_size": args.minibatch,
        "num_batches_per_epoch": args.num_envs * args.num_steps // args.minibatch,
        "num_epochs": args.epochs,
        "train_for_seconds": int(args.seconds),
    }
    return [f"--{name}={value}" for name, value in chosen.items()]


def main() -> None:
    turn = Turn(mode=["sync", "async"])
    register_atari_components()
    with tempfile.TemporaryDirectory(prefix="sample-factory-") as folder:
        _, runner = make_runner(parse_atari_args(options(turn.args, folder)))
        runner.register_observer(_Marks(turn))
        status = runner.init()
        if status == 0:
            status = runner.run()
    turn.print_answer("sf_examples.atari", "sample-factory", "gymnasium", "ale-py")
    sys.exit(int(status))


if __name__ == "__main__":
    main()
