"""The rate limiter in the engines of one process: who waits, and what is counted."""

import pytest

from tests.unit.engines.test_inline_engine import run as run_inline
from tests.unit.engines.test_virtual_engine import run as run_virtual

LIMITED = {"balance": "limiter", "max_lag": 1, "env_kwargs": {"length": 10_000}}
STEPS = 8  # of an unroll: 4 rows, 2 environments
REPLAY = {
    "name": "tests.fakes.scripted:ALGORITHM", "store": "replay", "ratio": 2.0,
    "capacity_steps": 1000, "num_updates": 2, "warmup_steps": 10 * STEPS,
}  # fmt: skip
QUEUE = {"name": "tests.fakes.scripted:ALGORITHM"}
SLOW_LEARNER = [{}] * 200


@pytest.mark.parametrize("store", [QUEUE, REPLAY], ids=["queue", "replay"])
def test_inserts_are_blocked_if_the_learner_is_slow(store, tmp_path):
    algorithm = {**store, "script": SLOW_LEARNER}
    outcome, *_ = run_virtual(tmp_path, algorithm=algorithm, max_env_steps=60 * STEPS, **LIMITED)
    record = outcome["record"]
    assert record["blocked_inserts"] > 20
    assert record["blocked_s"] > 0.5 * record["wall_s"]
    assert record["discarded_items"] == 0


@pytest.mark.parametrize("store", [QUEUE, REPLAY], ids=["queue", "replay"])
def test_no_insert_is_blocked_if_the_actors_are_slow(store, tmp_path):
    algorithm = {**store, "unroll_length": 200, "script": [{}]}
    outcome, *_ = run_virtual(tmp_path, algorithm=algorithm, max_env_steps=16_000, **LIMITED)
    record = outcome["record"]
    assert record["version"] > 20
    assert (record["blocked_inserts"], record["blocked_s"]) == (0, 0.0)


def test_pacing_never_blocks_an_insert(tmp_path):
    algorithm = {**QUEUE, "script": SLOW_LEARNER}
    paced = {**LIMITED, "balance": "paced"}
    outcome, *_ = run_virtual(tmp_path, algorithm=algorithm, max_env_steps=60 * STEPS, **paced)
    assert outcome["record"]["blocked_inserts"] == 0


def test_the_ratio_stays_inside_the_window(tmp_path):
    algorithm = {**REPLAY, "script": SLOW_LEARNER}
    outcome, *_ = run_virtual(tmp_path, algorithm=algorithm, max_env_steps=400 * STEPS, **LIMITED)
    ratio = outcome["record"]["ratio"]
    assert ratio["target"] == 2.0
    assert ratio["actual"] == pytest.approx(2.0, rel=0.05)


def test_the_inline_engine_runs_it_without_lag(tmp_path):
    outcome, *_ = run_inline(tmp_path, algorithm=QUEUE, max_env_steps=20 * STEPS, **LIMITED)
    assert outcome["record"]["version"] == 20
    assert outcome["record"]["lag_versions"]["max"] == 0
    assert outcome["record"]["blocked_inserts"] == 0


def test_a_run_with_a_limiter_can_be_resumed(tmp_path):
    asked = {**LIMITED, "algorithm": REPLAY, "checkpoint": {"period_s": 0.001}}
    run_virtual(tmp_path, max_env_steps=60 * STEPS, **asked)
    outcome, *_ = run_virtual(tmp_path, resume=True, max_env_steps=120 * STEPS, **asked)
    assert outcome["because"] == "max_env_steps"
    assert outcome["record"]["env_steps"] == pytest.approx(120 * STEPS, abs=4 * STEPS)
