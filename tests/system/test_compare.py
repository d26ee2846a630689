"""Two styles side by side, for real."""

import json

from tianji.cli.main import main
from tianji.observe.summary import read_summary
from tianji.run_folder.paths import find_run

TINY = [
    "compare", "cartpole-ppo", "--styles", "tianji,serial", "--max-env-steps", "40960",
    "--seeds", "1", "--run", "mine", "--observe.display", "off", "--no-tensorboard",
    "--plan.source", "rule", "--observe.period-s", "0.05", "--json",
]  # fmt: skip


def test_two_styles_run_side_by_side(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert main(TINY) == 0
    report = json.loads(capfd.readouterr().out)
    folder = tmp_path / "runs" / "mine"
    assert json.loads((folder / "comparison.json").read_text()) == report
    assert (folder / "comparison.png").stat().st_size > 10_000
    tianji, serial = report["styles"]
    assert (tianji["style"], serial["style"]) == ("tianji", "serial")
    assert serial["lag_versions"]["mean"] == 0 < tianji["lag_versions"]["mean"]
    assert all(one["rates_per_s"]["produced"] > 0 for one in report["styles"])
    assert all(0 < one["learner"]["busy_share"] <= 1 for one in report["styles"])
    assert all(one["greedy_return"]["value"] >= 8 for one in report["styles"]), "played to an end"
    assert "1 seed cannot support a claim" in " ".join(report["notes"])
    assert read_summary(find_run("mine/serial-s1"))["style"] == "serial"
