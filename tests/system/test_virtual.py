"""Training under virtual time: the same to the last bit, and serial where no lag is allowed."""

import pytest

from tests.system.runs import APEX, DQN, PPO, differences, run, saved_state

RULE = {"source": "rule"}
LATER = (".state.progress.wall_s", ".state.actors")


def states(one, other):
    """Both last checkpoints, without the times at which rows were finished."""
    found = [saved_state(summary["run_dir"]) for summary in (one, other)]
    return [{k: v for k, v in state.items() if not k.endswith("row_ns")} for state in found]


@pytest.mark.parametrize("algorithm", [PPO, DQN], ids=lambda a: a["name"])
def test_two_runs_are_bit_equal_although_they_are_asynchronous(algorithm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shared = {"algorithm": algorithm, "num_actors": 2, "max_env_steps": 3000, "plan": RULE}
    one, other = (run(engine="virtual", **shared) for _ in range(2))
    assert differences(*states(one, other)) == []
    for key in ("env_steps", "version", "mean_return_100", "wall_s", "lag_versions", "rates_per_s"):
        assert one[key] == other[key], key
    assert one["lag_versions"]["mean"] == pytest.approx(1.0, abs=0.05)
    serial = run(engine="inline", **shared)
    assert any(name.startswith(".weights") for name in differences(*states(one, serial)))


@pytest.mark.parametrize("algorithm", [PPO, DQN], ids=lambda a: a["name"])
def test_without_lag_it_equals_inline(algorithm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shared = {
        "algorithm": algorithm, "num_actors": 2, "max_lag": 0, "max_env_steps": 2000, "plan": RULE,
    }  # fmt: skip
    one, other = (run(engine=engine, **shared) for engine in ("inline", "virtual"))
    assert differences(*states(one, other), but=LATER) == []


def test_a_free_balance_is_the_same_to_the_last_bit_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shared = {"algorithm": APEX, "num_actors": 2, "max_env_steps": 3000, "plan": RULE}
    one, other = (run(engine="virtual", **shared) for _ in range(2))
    assert differences(*states(one, other)) == []
    assert one["ratio"] == other["ratio"] and one["ratio"]["target"] is None
    assert one["busy_share"]["actor-0"] > 0.97
