"""Figure 6 (d): planned against arbitrary mapping, fresh against stale batches."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tianji.config.machine import Machine, read_machine
from tianji.figures import style
from tianji.figures.estimates import INTERQUARTILE, band
from tianji.figures.files import Data, Point, train_once
from tianji.types import Array
from tianji.wording import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tianji.config.run import RunConfig

PRESET = "cartpole-ppo"
POOLS = (1, 8)
SEEDS = (1, 2, 3, 4, 5)
MAX_ENV_STEPS = 200_000
_MANY_ACTORS = 8


def measure_ablation() -> Data:
    """Run all seeds of all four kinds in turn, so that other load on the machine affects all."""
    mappings = find_mappings(read_machine())
    runs = [
        _run(mapping, shares, pool_batches, seed)
        for seed in SEEDS
        for mapping, shares in mappings.items()
        for pool_batches in POOLS
    ]
    return {"points": runs, "mappings": mappings}


def find_mappings(machine: Machine) -> dict[str, tuple[int, int]]:
    """Return actors and learner threads of the plan, and of an arbitrary mapping.

    The latter has as many actors as there are cores (more on a small machine) and one thread.
    """
    from tianji.planning.planner import measured_plan

    config = _config()
    plan = measured_plan(config, config.env, machine, lambda text: None).plan
    most = max(_MANY_ACTORS, len(machine.cores))
    many = max(n for n in range(1, most + 1) if config.num_envs % n == 0)
    return {"planned": (plan.num_actors, plan.learner_threads), "arbitrary": (many, 1)}


def _config(**settings: Any) -> RunConfig:
    from tianji.config.overrides import make_config

    return make_config(
        PRESET, max_env_steps=MAX_ENV_STEPS, target_return=None,
        observe={"period_s": 0.05, "display": "off", "tensorboard": False}, **settings,
    )  # fmt: skip


def _run(mapping: str, shares: tuple[int, int], pool_batches: int, seed: int) -> dict[str, Any]:
    sys.stderr.write(f"{mapping}, P = 1/{pool_batches}, seed {seed} ...\n")
    num_actors, learner_threads = shares
    config = _config(
        num_actors=num_actors, learner_threads=learner_threads, actor_threads=1, seed=seed,
        algorithm={"pool_batches": pool_batches},
    )  # fmt: skip
    summary, records = train_once(config)
    return {
        "mapping": mapping,
        "pool_batches": pool_batches,
        "seed": seed,
        "rates_per_s": summary["rates_per_s"],
        "lag_versions": summary["lag_versions"],
        "curve": curve(records),
    }


def curve(records: Iterable[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Return the mean return over time and over steps, from the first finished episode on."""
    known = [record for record in records if record.get("mean_return_100") is not None]
    return {
        "seconds": [round(record["wall_s"], 3) for record in known],
        "steps": [record["env_steps"] for record in known],
        "return": [round(record["mean_return_100"], 2) for record in known],
    }


_COLORS = {
    ("planned", 1): style.BLUE,
    ("planned", 8): style.SKY,
    ("arbitrary", 1): style.RED,
    ("arbitrary", 8): style.ORANGE,
}
_AXES = (("seconds", "seconds of training"), ("steps", "thousand environment steps"))
_GRID = 240


def draw_ablation(data: Data) -> Figure:
    figure = style.new_figure(12.0, 5.2, "What a planned mapping and fresh batches are worth")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (along, label) in zip(panels, _AXES, strict=True):
        for (mapping, pool_batches), color in _COLORS.items():
            runs = [
                run for run in data["points"]
                if (run["mapping"], run["pool_batches"]) == (mapping, pool_batches)
            ]  # fmt: skip
            _draw_runs(axes, runs, along, color, _name(data, mapping, pool_batches))
        style.quieten(axes)
        axes.set_xlim(0, None)
        axes.set_xlabel(label)
    panels[0].set_ylabel("mean return of the last 100 episodes")
    seeds = len({run["seed"] for run in data["points"]})
    where = f"{data['machine']['cpu']}, {data['machine']['cores']} cores"
    style.subtitle(
        panels[0],
        f"PPO, CartPole, one learner; {INTERQUARTILE} of {seeds} seeds; {where}",
    )
    style.legend_below(figure, ncols=2)
    return figure


def _draw_runs(axes: Any, runs: list[Point], along: str, color: str, label: str) -> None:
    """Draw the interquartile mean of all seeds, and its interval."""
    scale = 1e-3 if along == "steps" else 1.0
    ends = [run["curve"][along][-1] for run in runs]
    at = np.linspace(0.0, float(np.median(ends)), _GRID)
    curves: Array = np.stack([np.interp(at, r["curve"][along], r["curve"]["return"]) for r in runs])
    low, middle, high = band(curves)
    axes.fill_between(at * scale, low, high, color=color, alpha=0.15, linewidth=0)
    axes.plot(at * scale, middle, color=color, linewidth=1.8, label=label)


def _name(data: Data, mapping: str, pool_batches: int) -> str:
    actors, threads = data["mappings"][mapping]
    age = "New: P = 1" if pool_batches == 1 else f"Staleness: P = 1/{pool_batches}"
    shares = f"{counted(actors, 'actor')} + {counted(threads, 'learner thread')}"
    return f"{mapping}, {shares}, {age}"
