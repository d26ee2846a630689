"""Runs of a comparison that never ran."""

from __future__ import annotations

from typing import Any

from tianji.comparison.contest import Contest, Contestant
from tianji.comparison.outcomes import RunFigures
from tianji.config.overrides import make_config


def contestant(name: str = "tianji", **settings: Any) -> Contestant:
    quiet = {"display": "off", "tensorboard": False}
    tiny = {"env": "tianji.envs.worlds:Counting", "engine": "inline", "max_env_steps": 256}
    config = make_config(None, **{**tiny, "observe": quiet, **settings})
    return Contestant(name, config, f"{name} in a sentence.", (f"Loss: that of {name}.",))


def contest(*names: str, seeds: tuple[int, ...] = (1, 2), **settings: Any) -> Contest:
    contestants = tuple(contestant(name, **settings) for name in names or ("tianji", "impala"))
    return Contest("counting", contestants, seeds, "tianji compare counting --styles ...")


def run_figures(style: str, seed: int, **changes: Any) -> RunFigures:
    """A run that reached its target after two seconds."""
    side = {"busy_share": 0.9, "waited_share": {}}
    plain: dict[str, Any] = {
        "style": style,
        "seed": seed,
        "run_dir": f"runs/compare/{style}-s{seed}",
        "stopped_because": "target_reached",
        "mean_return_100": 480.0,
        "greedy_return": 490.0,
        "time_to_target_s": 2.0,
        "steps_to_target": 60_000,
        "start_up_s": 1.0,
        "wall_s": 2.1,
        "env_steps": 63_000,
        "episodes": 300,
        "updates": 400,
        "version": 60,
        "rates_per_s": {
            "produced": 30_000.0, "received": 30_000.0, "trained": 90_000.0,
            "unique_trained": 30_000.0,
        },
        "lag_versions": {"mean": 1.0, "p95": 1.0, "max": 2},
        "discarded_items": 0,
        "restarts": 0,
        "critical_path": "learner",
        "gather_rule": None,
        "explanation": ["The learner is the bottleneck."],
        "actors": side,
        "learner": side,
        "bound": None,
        "curve": [(10_000 * i, 0.4 * i, 80.0 * i) for i in range(1, 7)],
    }  # fmt: skip
    return {**plain, **changes}  # type: ignore[typeddict-item]  # the keys are those of a run
