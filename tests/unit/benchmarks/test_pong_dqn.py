"""The comparison of DQN and Ape-X on Pong: its file, its table, and its quick form."""

import json

import pytest

pytest.importorskip("ale_py", reason="the extra `atari` is not installed")

from benchmarks.pong import dqn
from tests.unit.figures.apex.test_apex_figures import made_up
from tianji.figures.apex.picture import draw_returns, draw_throughput


def test_a_file_is_completed_and_the_same_run_replaced(tmp_path):
    path, data = tmp_path / "r.json", made_up()
    first, second = data["points"]
    dqn.Results(path, {"question": "one"}).keep({**data, "points": [first]})
    dqn.Results(path, {"question": "two"}).keep({**data, "points": [second]})
    again = {**first, "settled": None}
    dqn.Results(path, {"question": "three"}).keep({**data, "points": [again]})
    kept = json.loads(path.read_text())
    assert [run["preset"] for run in kept["points"]] == ["pong-apex", "pong-dqn"]
    assert kept["points"][1]["settled"] is None
    assert kept["question"] == "three"


def test_the_table_leaves_out_what_is_not_known():
    lines = dqn.table(made_up(None)["points"]).splitlines()
    assert len(lines) == 4
    assert "pong-apex" in lines[3] and "1,000" in lines[3]


@pytest.mark.slow
def test_the_quick_form_runs_both_and_can_be_drawn(tmp_path, capfd):
    path = tmp_path / "quick.json"
    words = ["--quick", "--side-by-side", "--out", str(path), "--folder", str(tmp_path / "kept")]
    assert dqn.main(words) == 0
    data = json.loads(path.read_text())
    assert {run["preset"] for run in data["points"]} == {"pong-dqn", "pong-apex"}
    for run in data["points"]:
        assert run["summary"]["stopped_because"] == "max_wall"
        assert run["curve"] and run["settled"]["steps_per_s"] > 0
    draw_returns(data)
    draw_throughput(data)
    assert (tmp_path / "kept/runs/pong-apex-s1/summary.json").exists()
    assert "pong-apex" in capfd.readouterr().out
