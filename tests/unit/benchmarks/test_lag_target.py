"""The lag of the steady state, from the unrolls of a run by their lag."""

import json
from pathlib import Path

import pytest

from benchmarks.harness import ROOT
from benchmarks.lag_target import bench
from benchmarks.lag_target.bench import SET_POINTS, steady_lag


@pytest.mark.parametrize(
    ("histogram", "set_point", "expected"),
    [
        ([20], 0, 0.0),
        ([1, 22], 1, 1.0),
        ([2, 2, 2, 2, 60], 4, 4.0),
        ([2, 12, 60], 2, (10 * 1 + 60 * 2) / 70),
        ([1, 10, 10], 1, (10 + 20) / 20),
    ],
)
def test_the_start_is_left_out_and_nothing_else(histogram, set_point, expected):
    assert steady_lag(histogram, set_point) == pytest.approx(expected)


def test_a_run_is_asked_for_its_set_point_and_read(monkeypatch):
    asked = []
    summary = {
        "metrics": [
            {"env_steps": 512, "time_to_target_s": None},
            {"env_steps": 1024, "time_to_target_s": 1.0},
            {"env_steps": 1536, "time_to_target_s": 1.0},
        ],
        "env_steps": 2048, "time_to_target_s": 1.0, "lag_histogram": [1, 1, 3],
    }  # fmt: skip
    monkeypatch.setattr(bench, "train", lambda *words, **_: asked.append(words) or summary)
    found = bench.measure("some-preset", 2, 7)
    assert asked[0][:5] == ("some-preset", "--lag-target", "2", "--max-lag", "2")
    assert (found["steps_to_target"], found["steady_lag"]) == (1024, 2.0)
    monkeypatch.setattr(bench, "train", lambda *_, **__: {**summary, "time_to_target_s": None})
    assert bench.measure("some-preset", 2, 7)["steps_to_target"] is None


def test_the_kept_results_hold_what_the_page_says():
    path = max(Path(bench.__file__).parent.glob("results/*.json"))
    kept = json.loads(path.read_text())
    found = {(int(row["contestant"]), row["seed"]) for row in kept["raw"]}
    assert found == {(point, seed) for point in SET_POINTS for seed in (1, 2, 3)}
    assert all(check["met"] for check in kept["checks"])
    page = (ROOT / "docs/concepts/lag.md").read_text()
    shares = [row[5] for row in kept["tables"][0]["rows"]]
    assert all(share in page for share in shares[1:])
