"""The measurements of figure 6 (d): four kinds of runs that differ in mapping and staleness."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tianji.config.machine import Machine, read_machine
from tianji.figures.files import Data
from tianji.figures.runs import train_once

if TYPE_CHECKING:
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
    from tianji.api import make_config

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
