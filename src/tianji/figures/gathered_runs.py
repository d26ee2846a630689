"""One run behind the figures of gathered gradients: its settings, its curve, what it costs."""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tianji.figures.gathered import COUNTED, Trial
from tianji.figures.gathered_clock import end_s, rounds_of
from tianji.figures.points import measured_here

if TYPE_CHECKING:
    from tianji.config.run import RunConfig

POINTS = 120
"""Of a learning curve."""
GAMMA = 0.99
HIDDEN = (64, 64)


def config_of(trial: Trial) -> RunConfig:
    """Given times per gradient make an estimate that ends with its episode unbiased, and the steps
    after the end are not simulated for nothing."""
    from tianji.config.run import RunConfig

    task = trial.task
    rounds = rounds_of(trial.method, trial.order, trial.num_actors, trial.choice.m)
    seconds = end_s(rounds, trial.num_rounds) * (1 + 1e-6)  # the last one is closed by then
    algorithm: dict[str, Any] = {
        "name": trial.method, "learning_rate": 2.0**trial.choice.exponent, "eta": trial.choice.eta,
        "gamma": GAMMA, "unroll_length": task.horizon, "estimate": "episodes",
    }  # fmt: skip
    if trial.method in COUNTED:
        algorithm |= {"m": trial.choice.m, "m_init": trial.choice.m}
    return RunConfig.model_validate({
        **_world_of(trial), "algorithm": algorithm, "model": {"hidden": HIDDEN},
        "engine": "virtual", "seed": trial.seed, "num_envs": trial.num_actors,
        "num_actors": trial.num_actors, "learner_threads": 1, "actor_threads": 1,
        "times": {"law": trial.order.compute, "compute": trial.order.given},
        "max_wall_s": seconds, "max_env_steps": 10**12,
        "checkpoint": {"period_s": 1e9, "keep_last": 1}, "plan": {"source": "rule"},
        "observe": {"period_s": seconds / POINTS, "display": "off", "tensorboard": False},
    })  # fmt: skip


def _world_of(trial: Trial) -> dict[str, Any]:
    if trial.task.is_twin:
        twins = ("tianji.envs.twins:plain", "tianji.envs.twins:mirrored")
        return {"envs": twins, "env_kwargs": {"id": trial.task.env}}
    return {"env": trial.task.env}


def make_run(trial: Trial) -> dict[str, Any]:
    """Train, in a folder that is left behind by nobody."""
    from tianji.run import train_config

    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tianji-figure-") as folder, contextlib.chdir(folder):
        summary = train_config(config_of(trial))
        lines = (Path(summary["run_dir"]) / "metrics.jsonl").read_text().splitlines()
    return {
        "num_rounds": trial.num_rounds,
        "stopped_because": summary["stopped_because"],
        "env_steps": summary["env_steps"],
        "gradients": summary["episodes"],
        "gather": summary["gather"],
        "machine": measured_here(trial.name, [])["machine"],
        "core_s": round(time.monotonic() - began, 1),
        "curve": curve([json.loads(line) for line in lines]),
    }


def curve(records: Iterable[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Returns by rounds, from the first finished episodes on. Of several tasks: the mean of their
    means, so that it does not matter who brings more episodes, and each by itself."""
    found: dict[str, list[float]] = {"rounds": [], "seconds": [], "return": []}
    for record in records:
        version, by_env = record["version"], record.get("returns_by_env") or {}
        returns = list(by_env.values()) or [record.get("mean_return_100")]
        if None in returns or version <= max(found["rounds"], default=0):
            continue
        found["rounds"].append(version)
        found["seconds"].append(round(record["wall_s"], 6))
        found["return"].append(round(sum(returns) / len(returns), 3))
        for index, value in enumerate(by_env.values()):
            found.setdefault(f"task_{index}", []).append(round(value, 3))
    return found


def core_s(trial: Trial) -> float:
    """About how long it takes on one core."""
    gradients = {"sync-nigt": trial.num_actors, "afedpg": 1}.get(trial.method, trial.choice.m)
    if trial.method == "malenia-nigt":
        gradients = 66 if trial.order.given else 2 * trial.choice.m
    steps = trial.num_rounds * gradients * trial.task.steps_per_gradient
    return 4.0 + steps * trial.task.us_per_step / 1e6
