"""One run of a nigt figure: its settings, its learning curve, its estimated duration."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tianji.figures.files import describe_machine, train_once
from tianji.figures.gathering.grid import end_s, rounds_of
from tianji.figures.gathering.panels import COUNTED, Trial

if TYPE_CHECKING:
    from tianji.config.run import RunConfig

POINTS = 120  # points of a learning curve
GAMMA = 0.99
HIDDEN = (64, 64)


def config_of(trial: Trial) -> RunConfig:
    """Return the settings of a run.

    Because times are given per gradient, an estimate that ends with its episode is unbiased, and no
    step is simulated after the end.
    """
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
    began = time.monotonic()
    summary, records = train_once(config_of(trial))
    return {
        "num_rounds": trial.num_rounds,
        "stopped_because": summary["stopped_because"],
        "env_steps": summary["env_steps"],
        "gradients": summary["episodes"],
        "gather": summary["gather"],
        "machine": describe_machine(),
        "core_s": round(time.monotonic() - began, 1),
        "curve": curve(records),
    }


def curve(records: Iterable[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Return the mean return by rounds, from the first finished episodes on.

    With several tasks it is the mean of the tasks' means, so that a task with more episodes has no
    more weight; the tasks' own means come with it.
    """
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
    """Return the estimated duration on one core."""
    gradients = {"sync-nigt": trial.num_actors, "afedpg": 1}.get(trial.method, trial.choice.m)
    if trial.method == "malenia-nigt":
        gradients = 66 if trial.order.given else 2 * trial.choice.m
    steps = trial.num_rounds * gradients * trial.task.steps_per_gradient
    return 4.0 + steps * trial.task.us_per_step / 1e6
