"""Batches drawn from a pool: staleness as a setting."""

import json
from pathlib import Path

import pytest

from tests.system.runs import IMPALA, PPO, QUIET, run
from tests.unit.planning.plans import config, plan_for

POOL = 4


def ages(algorithm, **values):
    """How old unrolls were when used, in the last line of metrics."""
    summary = run(algorithm=algorithm, max_env_steps=3000, num_envs=4, num_actors=2,
                  observe=QUIET, **values)  # fmt: skip
    lines = (Path(summary["run_dir"]) / "metrics.jsonl").read_text().splitlines()
    assert summary["ratio"]["actual"] == 1.0
    assert summary["discarded_items"] == 0
    return json.loads(lines[-1])["learner"].get("age_versions")


@pytest.mark.parametrize(
    ("algorithm", "engine"),
    [
        (PPO, "inline"),
        (IMPALA, "inline"),
        *(pytest.param(each, "local", marks=pytest.mark.slow) for each in (PPO, IMPALA)),
    ],
    ids=lambda value: value if isinstance(value, str) else value["name"],
)
def test_a_pool_gives_older_batches_at_the_same_ratio(algorithm, engine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert ages({**algorithm, "pool_batches": POOL}, engine=engine) > 0


def test_without_a_pool_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert ages(PPO, engine="inline") is None


def test_the_pool_has_slots_of_its_own():
    plans = [plan_for(config({"name": "ppo", "pool_batches": k}), cores=3) for k in (1, POOL)]
    per_version = plans[0].unrolls_per_version
    assert plans[1].num_slots - plans[0].num_slots == (POOL - 1) * per_version
