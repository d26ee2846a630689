"""`tianji plan` for real, in short form, and a run that follows it."""

import json
import signal

import psutil

from tests.system.commands import Command
from tianji.cli.main import main
from tianji.planning.measure import measurement
from tianji.planning.rehearse import auditions, rehearsal

SMALL = ["--num-envs", "4", "--unroll-length", "8", "--minibatch-size", "16", "--epochs", "2"]


def make_short(monkeypatch):
    for name in ("ALONE_S", "LOADED_S"):
        monkeypatch.setattr(measurement, name, 0.1)
    monkeypatch.setattr(auditions, "MOST", 1)
    monkeypatch.setattr(auditions, "REHEARSAL_S", 0.3)
    monkeypatch.setattr(rehearsal, "SETTLE_S", 0.1)


def test_a_run_follows_the_plan_that_was_measured_for_it(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    make_short(monkeypatch)
    before = set(psutil.Process().children())
    assert main(["plan", *SMALL, "--json"]) == 0
    planned = json.loads(capfd.readouterr().out)
    assert planned["predicted"]["produced"] > 0
    assert planned["roles"]["actor"]["processes"] == planned["num_actors"]
    assert set(psutil.Process().children()) <= before
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]
    words = ["train", *SMALL, "--max-env-steps", "2000", "--run", "it", "--display", "off"]
    assert main([*words, "--target-return", "none", "--json"]) == 0
    plan = json.loads((tmp_path / "runs" / "it" / "plan.json").read_text())
    assert plan["source"] == "measured"
    assert plan["num_actors"] == planned["num_actors"]
    assert plan["prediction"]["produced"] == planned["predicted"]["produced"]
    assert "saved profile" in (tmp_path / "runs" / "it" / "events.jsonl").read_text()


def test_a_measurement_can_be_interrupted(tmp_path):
    command = Command(tmp_path, "plan", *SMALL, "--json")
    children = command.wait_for(
        lambda: psutil.Process(command.process.pid).children(recursive=True), "measuring process"
    )
    command.process.send_signal(signal.SIGINT)
    code, out, _ = command.finish()
    assert code == 130
    assert json.loads(out)["error"] == "Interrupted."
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []
    assert list(tmp_path.iterdir()) == []


def test_a_broken_environment_is_told_in_its_own_words(tmp_path):
    flaky = ["--env", "tianji.envs.worlds:Flaky", "--env-kwargs.at-step", "5"]
    code, out, _ = Command(tmp_path, "plan", *SMALL, *flaky, "--json").finish()
    assert code == 1
    assert "this world fails in step 5" in json.loads(out)["error"]
