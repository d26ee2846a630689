"""The runs of figure 1: one of one's own, or those of which the package keeps an excerpt."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import NamedTuple

from tianji.config.files import load_config
from tianji.figures.files import Data
from tianji.figures.timeline.excerpt import Excerpt, make_excerpt
from tianji.figures.timeline.window import choose
from tianji.run_folder.paths import CONFIG_FILE, find_run
from tianji.trace.read import newest_trace, read_trace

PPO, DQN = "cartpole-ppo", "cartpole-dqn"
MAX_ENV_STEPS = 100_000


class TracedRun(NamedTuple):
    """A run that is recorded for the figure: its name, its preset, and its style."""

    name: str
    preset: str
    style: str
    max_env_steps: int = MAX_ENV_STEPS


RUNS = (
    TracedRun("serial: all roles take turns in one process", PPO, "serial"),
    TracedRun("lock-step: roles in processes take turns", PPO, "lock-step"),
    TracedRun("Gorila: actors send gradients of their own replay", DQN, "gorila", 20_000),
    TracedRun("SEED: the learner's process infers for the actors", PPO, "seed"),
    TracedRun("A3C: actors send gradients of their own unrolls", PPO, "a3c"),
    TracedRun("Ape-X: prioritised replay, and nobody waits", DQN, "apex", 20_000),
    TracedRun("TianJi: every role runs on its own, paced", PPO, "tianji"),
)


def excerpt_of(run: str, from_s: float | None = None, for_s: float | None = None) -> Excerpt:
    """Read the part to show of a run of this name or path; without a window, choose one."""
    run_dir = find_run(run)
    timeline = read_trace(newest_trace(run_dir))
    config = load_config(run_dir / CONFIG_FILE)
    about = f"{config.env}, {config.algorithm.name}, {config.engine} engine, run {run_dir.name}"
    return make_excerpt(timeline, choose(timeline, from_s, for_s), about)


def measure() -> Data:
    """Record all runs on this machine, and keep an excerpt of each."""
    return {"points": [{"name": run.name, **_record(run)} for run in RUNS]}


def _record(run: TracedRun) -> Data:
    from tianji.config.overrides import make_config
    from tianji.run import train_config

    config = make_config(
        run.preset, style=run.style, max_env_steps=run.max_env_steps, target_return=None,
        observe={"trace": True, "display": "off", "tensorboard": False},
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="tianji-figure-") as folder, contextlib.chdir(folder):
        summary = train_config(config)
        return excerpt_of(str(Path(summary["run_dir"]).resolve())).to_data()
