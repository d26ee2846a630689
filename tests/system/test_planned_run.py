"""`tianji plan` for real, in short form, and a run that follows it."""

import json
import signal

import psutil
import pytest

from tests.system.commands import Command
from tianji.cli.main import main
from tianji.config.machine import Machine
from tianji.planning.measure import measure as measuring
from tianji.planning.measure import measurement
from tianji.planning.rehearse import auditions, rehearsal

SMALL = ["--num-envs", "4", "--unroll-length", "8", "--minibatch-size", "16", "--epochs", "2"]


def make_short(monkeypatch):
    for name in ("ALONE_S", "LOADED_S"):
        monkeypatch.setattr(measurement, name, 0.1)
    monkeypatch.setattr(auditions, "MOST", 1)
    monkeypatch.setattr(auditions, "REHEARSAL_S", 0.3)
    monkeypatch.setattr(rehearsal, "SETTLE_S", 0.1)


@pytest.fixture
def profiles(monkeypatch):
    """What is measured, on two of the cores."""
    measure, found = measuring.measure, []

    def measure_and_keep(config, env, machine, *rest):
        found.append(measure(config, env, Machine((0, 1), machine.memory_bytes), *rest))
        return found[-1]

    monkeypatch.setattr(measuring, "measure", measure_and_keep)
    return found


def test_a_run_follows_the_plan_that_was_measured_for_it(tmp_path, monkeypatch, capfd, profiles):
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
    (profile,) = profiles
    it_has_every_point_and_a_rehearsal(profile)
    words = ["train", *SMALL, "--max-env-steps", "2000", "--run", "it", "--display", "off"]
    assert main([*words, "--target-return", "none", "--json"]) == 0
    plan = json.loads((tmp_path / "runs" / "it" / "plan.json").read_text())
    assert plan["source"] == "measured"
    assert plan["num_actors"] == planned["num_actors"]
    assert plan["prediction"]["produced"] == planned["predicted"]["produced"]
    assert "saved profile" in (tmp_path / "runs" / "it" / "events.jsonl").read_text()


def it_has_every_point_and_a_rehearsal(profile):
    assert [cost.num_envs for cost in profile.actors] == [1, 2, 4]
    assert [cost.threads for cost in profile.learners] == [1, 2]
    assert profile.steps_per_version == 4 * 8
    assert profile.policy_bytes > 0
    for cost in (*(a.unroll for a in profile.actors), *(x.version for x in profile.learners)):
        assert cost.alone_s > 0
        assert cost.loaded_s > 0
        assert cost.cpu_s > 0
    assert all(50 << 20 < cost.memory_bytes < 2 << 30 for cost in profile.actors)
    rehearsal, *_ = profile.rehearsals  # the winner is tried once more
    assert rehearsal.trained > 0 and rehearsal.ratio == 1.0
    assert 0 <= rehearsal.lag_versions <= 1
    assert profile.profiling_s > 0


def test_a_measurement_can_be_interrupted(tmp_path):
    command = Command(tmp_path, "plan", *SMALL, "--json")
    children = command.wait_for(
        lambda: psutil.Process(command.process.pid).children(recursive=True), "measuring process"
    )
    command.process.send_signal(signal.SIGINT)
    code, out, err = command.finish()
    assert code == 130, err
    assert json.loads(out)["error"] == "Interrupted."
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []
    assert list(tmp_path.iterdir()) == []
