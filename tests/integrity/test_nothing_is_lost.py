"""The counting world through the whole local engine: an auditor looks at every item."""

import pytest

from tests.system.runs import run

AUDITOR = {"name": "tests.fakes.auditor:ALGORITHM", "unroll_length": 8}


SLOW = [
    pytest.param(max_lag, end, marks=pytest.mark.slow)
    for max_lag, end in ((0, "terminated"), (0, "truncated"), (1, "truncated"), (3, "terminated"))
]


@pytest.mark.parametrize(("max_lag", "end"), [(1, "terminated"), (3, "truncated"), *SLOW])
def test_every_item_arrives_once_in_order_and_whole(max_lag, end, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    summary = run(
        env="tianji.envs.worlds:Counting",
        env_kwargs={"length": 7, "spread": 5, "end": end},
        algorithm=AUDITOR,
        num_envs=4,
        num_actors=2,
        max_lag=max_lag,
        max_env_steps=20_000,
    )
    assert summary["stopped_because"] == "max_env_steps", summary.get("first_cause")
    assert summary["restarts"] == 0
    assert summary["discarded_items"] == 0
    assert summary["lag_versions"]["max"] <= max_lag
    assert summary["ratio"]["actual"] == 1.0
