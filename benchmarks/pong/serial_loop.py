"""Train Pong by the serial PPO loop that one would write by hand: collect, update, collect, ...

    python -m benchmarks.pong.serial_loop --device cuda --folder runs/serial-1 --max-s 480
    python -m benchmarks.pong.serial_loop --quick

One process, ALE's own threads, 64 environments x 64 steps, 4 epochs, minibatches of 1024, and the
Nature-CNN. It stops when the mean raw score of the last 100 full games reaches the target, or after
--max-s seconds of training in this command; the same command continues from the checkpoint in the
folder (network, optimiser, counters, elapsed time; environments start afresh). Reserve half a
minute of a command's time limit for the start-up: imports, CUDA, environments.

The folder gets `progress.jsonl` (one line per rollout) and `checkpoint.pt`. The clock runs while
the loop trains, in all commands together; start-up does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.harness import parser
from benchmarks.pong.emulator import NUM_ACTIONS, make_pong
from benchmarks.pong.ppo import FRAMES, PPO, Settings
from benchmarks.pong.reporting import make_report

WINDOW = 100
SEEDS_PER_COMMAND = 100_000
"""Distance between the environments' seeds of two commands of one training run."""


class Games(Protocol):
    """A vector environment of Pong: ALE's, EnvPool's, or a fake one."""

    def reset(self, *, seed: int | None = None) -> tuple[NDArray[np.uint8], Any]: ...

    def step(self, actions: Any) -> tuple[NDArray[np.uint8], Any, Any, Any, Any]: ...


@dataclass
class Progress:
    """Counters of one training run, over all commands."""

    env_steps: int = 0
    games: int = 0
    commands: int = 0
    collect_s: float = 0.0
    update_s: float = 0.0
    steps_to_target: int | None = None
    time_to_target_s: float | None = None
    scores: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW))

    @property
    def elapsed_s(self) -> float:
        return self.collect_s + self.update_s

    @property
    def mean_return_100(self) -> float | None:
        """Mean raw score of the last 100 full games; None before 100 have ended."""
        return sum(self.scores) / WINDOW if len(self.scores) == WINDOW else None

    def line(self) -> dict[str, float | None]:
        return {
            "time_s": round(self.elapsed_s, 3),
            "env_steps": self.env_steps,
            "mean_return_100": self.mean_return_100,
            "games": self.games,
            "collect_s": round(self.collect_s, 3),
            "update_s": round(self.update_s, 3),
        }


class SerialLoop:
    """Collects and updates by turns."""

    def __init__(
        self, ppo: PPO, games: Games, seed: int, progress: Progress, target: float
    ) -> None:
        self.ppo, self.progress = ppo, progress
        self._games, self._target = games, target
        self._frames, _ = games.reset(seed=seed)
        self._score = np.zeros(ppo.settings.num_envs)

    @property
    def is_done(self) -> bool:
        return self.progress.time_to_target_s is not None

    def iterate(self) -> None:
        """Collect one rollout and train on it, unless the target is reached on the way."""
        started = time.perf_counter()
        self._collect(started)
        collected = time.perf_counter()
        self.progress.collect_s += collected - started
        if self.is_done:
            return
        self.ppo.update(self._frames)
        if self.ppo.device.type == "cuda":
            # The next action needs the new network anyway; waiting here makes the split exact.
            torch.cuda.synchronize()
        self.progress.update_s += time.perf_counter() - collected

    def _collect(self, started: float) -> None:
        progress = self.progress
        for t in range(self.ppo.settings.num_steps):
            action = self.ppo.act(t, self._frames)
            self._frames, reward, terminated, truncated, _ = self._games.step(action)
            ended = terminated | truncated
            self.ppo.observe(t, reward, ended)
            progress.env_steps += len(action)
            self._score += reward
            for index in np.flatnonzero(ended):
                progress.scores.append(float(self._score[index]))
                progress.games += 1
                self._score[index] = 0.0
            mean = progress.mean_return_100 if ended.any() else None
            if mean is not None and mean >= self._target:
                progress.steps_to_target = progress.env_steps
                progress.time_to_target_s = progress.elapsed_s + time.perf_counter() - started
                return


def save(path: Path, ppo: PPO, progress: Progress, seed: int) -> None:
    counters = {**asdict(progress), "scores": list(progress.scores)}
    content = {
        "settings": asdict(ppo.settings),
        "seed": seed,
        "net": ppo.net.state_dict(),
        "optimiser": ppo.optimiser.state_dict(),
        "progress": counters,
    }
    partial = path.with_suffix(".partial")
    torch.save(content, partial)
    partial.replace(path)


def restore(path: Path, ppo: PPO, seed: int) -> Progress:
    """Load the checkpoint into the network and the optimiser; return the counters."""
    content = torch.load(path, map_location=ppo.device)
    if (content["settings"], content["seed"]) != (asdict(ppo.settings), seed):
        raise SystemExit(f"{path} belongs to a run with other settings or another seed.")
    ppo.net.load_state_dict(content["net"])
    ppo.optimiser.load_state_dict(content["optimiser"])
    counters = content["progress"]
    return Progress(**{**counters, "scores": deque(counters["scores"], maxlen=WINDOW)})


def warm_up(settings: Settings, device: torch.device) -> None:
    """Let CUDA and cuDNN load and choose their kernels on a network that is thrown away."""
    ppo = PPO(settings, NUM_ACTIONS, device)
    frames = np.zeros((settings.num_envs, *FRAMES), np.uint8)
    ppo.act(0, frames)
    ppo.update(frames)
    torch.cuda.synchronize()


def train(
    args: argparse.Namespace, settings: Settings, make_games: Callable[[int, int], Games]
) -> Progress:
    """Train in this command until the target, --max-s or --max-env-steps is reached; save."""
    device = torch.device(args.device)
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(args.seed)
    ppo, progress = PPO(settings, NUM_ACTIONS, device), Progress()
    args.folder.mkdir(parents=True, exist_ok=True)
    checkpoint = args.folder / "checkpoint.pt"
    if checkpoint.exists():
        progress = restore(checkpoint, ppo, args.seed)
    if progress.time_to_target_s is not None:
        return progress
    if device.type == "cuda":
        warm_up(settings, device)
    env_seed = args.seed + SEEDS_PER_COMMAND * progress.commands
    torch.manual_seed(env_seed)
    games = make_games(settings.num_envs, args.threads)
    loop = SerialLoop(ppo, games, env_seed, progress, args.target)
    progress.commands += 1
    stop_at_s = progress.elapsed_s + args.max_s
    with (args.folder / "progress.jsonl").open("a") as lines:
        while (
            not loop.is_done
            and progress.elapsed_s < stop_at_s
            and progress.env_steps < args.max_env_steps
        ):
            loop.iterate()
            lines.write(json.dumps(progress.line()) + "\n")
            lines.flush()
    save(checkpoint, ppo, progress, args.seed)
    return progress


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    cores = len(os.sched_getaffinity(0))
    made = parser(__doc__ or "")
    made.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--num-envs", type=int, default=64)
    made.add_argument("--num-steps", type=int, default=64, help="steps of a rollout")
    made.add_argument("--minibatch", type=int, default=1024)
    made.add_argument("--threads", type=int, default=cores, help="emulator threads")
    made.add_argument("--target", type=float, default=18.0, help="mean of 100 full games")
    made.add_argument("--max-s", type=float, default=480.0, help="training seconds, this command")
    made.add_argument("--max-env-steps", type=int, default=10_000_000, help="of all commands")
    made.add_argument("--folder", type=Path, help="progress and checkpoint of this run")
    args = made.parse_args(argv)
    if args.quick:
        args.num_envs, args.num_steps, args.minibatch, args.max_env_steps = 4, 8, 16, 64
    elif args.folder is None:
        made.error("--folder is needed, except with --quick")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    args = arguments(argv)
    settings = Settings(args.num_envs, args.num_steps, minibatch=args.minibatch)
    report = make_report("serial_loop", args)
    report.note(settings=asdict(settings), device=args.device, emulator_threads=args.threads)
    with tempfile.TemporaryDirectory() as scratch:
        args.folder = args.folder or Path(scratch)
        progress = train(args, settings, make_pong)
    figures = {
        **progress.line(),
        "steps_per_s": progress.env_steps / progress.elapsed_s,
        "collect_share": progress.collect_s / progress.elapsed_s,
        "time_to_target_s": progress.time_to_target_s,
        "steps_to_target": progress.steps_to_target,
        "commands": progress.commands,
    }
    report.add("serial loop", args.seed, figures)
    row = ["-" if value is None else f"{value:,.4g}" for value in figures.values()]
    report.table(f"Serial PPO loop, Pong to {args.target:g}", list(figures), [row])
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
