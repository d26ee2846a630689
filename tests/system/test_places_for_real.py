"""The places of inference are rehearsed with real processes, and a run uses the kept choice."""

import json

import psutil
import pytest

from tianji.cli.main import main
from tianji.config.machine import Machine
from tianji.config.run import RunConfig
from tianji.planning.planner import probe_tasks
from tianji.planning.rehearse import places, rehearsal
from tianji.planning.rehearse.places import try_places

SMALL = ["--num-envs", "4", "--unroll-length", "8", "--minibatch-size", "16", "--epochs", "2"]


def make_short(monkeypatch):
    monkeypatch.setattr(places, "REHEARSAL_S", 0.3)
    monkeypatch.setattr(rehearsal, "SETTLE_S", 0.1)


@pytest.mark.slow
def test_places_are_tried_one_after_the_other(monkeypatch):
    make_short(monkeypatch)
    algorithm = {"name": "ppo", "unroll_length": 8, "minibatch_size": 16, "epochs": 2}
    config = RunConfig(
        env="CartPole-v1", algorithm=algorithm, num_envs=4, num_actors=1, learner_threads=1
    )
    before, told = set(psutil.Process().children()), []
    trials = try_places(
        config, config.env, Machine((0, 1), 1 << 34), probe_tasks(config, config.env),
        ("served", "actor-gpu", "actor-cpu"), told.append,
    )  # fmt: skip
    served, on_gpu, on_cpu = trials.trials
    assert served.rate > 0
    assert on_cpu.rate > 0
    assert (on_gpu.rate, "needs a GPU" in on_gpu.failure) == (0.0, True)
    assert trials.best in (served, on_cpu)
    assert f"Inference served: {served.rate:,.0f} steps/s." in told
    assert set(psutil.Process().children()) <= before


def test_a_server_is_measured_and_the_next_run_knows(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    make_short(monkeypatch)
    words = [*SMALL, "--inference", "served", "--num-actors", "1"]
    assert main(["plan", *words, "--json"]) == 0
    planned = json.loads(capfd.readouterr().out)
    (place,) = planned["places"]
    assert place["steps_per_s"] == planned["predicted"]["received"] > 0
    assert planned["roles"]["inference"]["processes"] == 1
    limits = ["--max-env-steps", "2000", "--target-return", "none", "--run", "it"]
    assert main(["train", *words, *limits, "--display", "off", "--json"]) == 0
    notes = json.loads((tmp_path / "runs" / "it" / "plan.json").read_text())["notes"]
    assert any(f"served {place['steps_per_s']:,.0f} steps/s" in note for note in notes)
