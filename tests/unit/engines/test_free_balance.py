"""A free balance in the engines of one process: simulated speeds, and turns."""

import pytest

from tests.unit.engines.test_inline_engine import run as run_inline
from tests.unit.engines.test_virtual_engine import run as run_virtual

STEPS = 8  # of an unroll: 4 rows, 2 environments
REPLAY = {
    "name": "tests.fakes.scripted:ALGORITHM", "store": "replay", "ratio": 2.0,
    "capacity_steps": 1000, "num_updates": 2,
}  # fmt: skip
FREE = {"balance": "free", "max_lag": 1, "env_kwargs": {"length": 10_000}}


SLOW_LEARNER = {**REPLAY, "script": [{}] * 200}
SLOW_ACTOR = {**REPLAY, "unroll_length": 200, "script": [{}]}


@pytest.mark.parametrize("algorithm", [SLOW_LEARNER, SLOW_ACTOR], ids=["learner", "actor"])
def test_neither_side_waits_if_the_other_is_slow(algorithm, tmp_path):
    outcome, *_ = run_virtual(tmp_path, algorithm=algorithm, max_env_steps=8000, **FREE)
    record = outcome["record"]
    assert record["busy_share"]["actor-0"] > 0.97
    assert record["busy_share"]["learner"] + record["busy_share"]["buffer"] > 0.93
    assert record["discarded_items"] == 0


def test_the_ratio_follows_the_speeds(tmp_path):
    ratios = []
    for algorithm in (SLOW_LEARNER, SLOW_ACTOR):
        run_dir = tmp_path / str(len(ratios))
        outcome, *_ = run_virtual(run_dir, algorithm=algorithm, max_env_steps=8000, **FREE)
        ratios.append(outcome["record"]["ratio"])
    assert [ratio["target"] for ratio in ratios] == [None, None]
    assert ratios[0]["actual"] < 0.5 < 2.0 < ratios[1]["actual"]


def test_the_inline_engine_takes_turns(tmp_path):
    algorithm = {**REPLAY, "warmup_steps": 3 * STEPS}
    outcome, *_ = run_inline(tmp_path, algorithm=algorithm, max_env_steps=20 * STEPS, **FREE)
    record = outcome["record"]
    assert record["env_steps"] == 20 * STEPS
    assert record["version"] == 17, "one for each unroll after the warm-up"
    assert record["ratio"] == {"target": None, "actual": 2.0}
