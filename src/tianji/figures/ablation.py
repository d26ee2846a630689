"""What figure 6 (d) measures: four kinds of runs that differ in mapping and in staleness."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tianji.config.machine import Machine, read_machine
from tianji.figures.points import measured_here

if TYPE_CHECKING:
    from tianji.config.run import RunConfig

PRESET = "cartpole-ppo"
POOLS = (1, 8)
SEEDS = (1, 2, 3, 4, 5)
MAX_ENV_STEPS = 200_000
_MANY_ACTORS = 8


def measure_ablation(name: str) -> dict[str, Any]:
    """All seeds of all four, in turns, so that what the machine does meanwhile meets all alike."""
    mappings = find_mappings(read_machine())
    runs = [
        _run(mapping, shares, pool_batches, seed)
        for seed in SEEDS
        for mapping, shares in mappings.items()
        for pool_batches in POOLS
    ]
    return {**measured_here(name, runs), "mappings": mappings}


def find_mappings(machine: Machine) -> dict[str, tuple[int, int]]:
    """Actors and learner threads: as the planner has it, and as many actors as there are cores
    (some more on a small machine), with one learner thread."""
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
    from tianji.run import train_config

    sys.stderr.write(f"{mapping}, P = 1/{pool_batches}, seed {seed} ...\n")
    num_actors, learner_threads = shares
    config = _config(
        num_actors=num_actors, learner_threads=learner_threads, actor_threads=1, seed=seed,
        algorithm={"pool_batches": pool_batches},
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="tianji-figure-") as folder, contextlib.chdir(folder):
        summary = train_config(config)
        lines = (Path(summary["run_dir"]) / "metrics.jsonl").read_text().splitlines()
    return {
        "mapping": mapping,
        "pool_batches": pool_batches,
        "seed": seed,
        "rates_per_s": summary["rates_per_s"],
        "lag_versions": summary["lag_versions"],
        "curve": curve([json.loads(line) for line in lines]),
    }


def curve(records: list[Mapping[str, Any]]) -> dict[str, list[float]]:
    """The mean return over time and over steps, from the first finished episode on."""
    known = [record for record in records if record.get("mean_return_100") is not None]
    return {
        "seconds": [round(record["wall_s"], 3) for record in known],
        "steps": [record["env_steps"] for record in known],
        "return": [round(record["mean_return_100"], 2) for record in known],
    }
