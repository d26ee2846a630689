"""The runs of figure 1: one of one's own, or those of which the package keeps an excerpt."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import NamedTuple

from tianji.config.files import load_config
from tianji.explain.gathering import wait_words
from tianji.figures.files import Data
from tianji.figures.timeline.excerpt import PACED, Excerpt, make_excerpt
from tianji.figures.timeline.window import choose
from tianji.observe.run_log import last_metrics
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
    return _excerpt(run_dir, f"{_about(run_dir)}, run {run_dir.name}", from_s, for_s)


def _about(run_dir: Path) -> str:
    config = load_config(run_dir / CONFIG_FILE)
    return f"{config.env}, {config.algorithm.name}, {config.engine} engine"


def _excerpt(
    run_dir: Path, about: str, from_s: float | None = None, for_s: float | None = None
) -> Excerpt:
    timeline = read_trace(newest_trace(run_dir))
    window = choose(timeline, from_s, for_s)
    return make_excerpt(timeline, window, about, _without_grant(run_dir))


def _without_grant(run_dir: Path) -> str:
    """Say what an actor without a grant does: one that sends gradients waits for the learner."""
    record = last_metrics(run_dir)
    if record is None or "gather" not in record:
        return PACED
    return f"waits {wait_words(record['gather']['rule'])['grant']}"


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
        run_dir = Path(summary["run_dir"])
        return _excerpt(run_dir, _about(run_dir)).to_data()
