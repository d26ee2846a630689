"""`tianji plan` on a machine with a GPU, as a person or a script types it."""

import json

import pytest

from tianji.cli.main import main
from tianji.config.machine import Machine
from tianji.costs.profile import Rehearsal
from tianji.errors import WorkerLost

NAMES = {
    "algorithm", "chosen_because", "resolved",
    "planning_s", "predicted", "lag_versions", "ratio", "roles", "memory_bytes", "memory",
    "reasons", "num_actors", "envs_per_actor", "actor_threads", "learner_threads", "device",
    "inference", "places", "balance", "profile_key", "from_cache",
}  # fmt: skip


def rehearse(spec, seconds, limit_s):
    plan = spec.plan
    if plan.inference == "actor-cpu":
        raise WorkerLost("actor-0: too slow.")
    rate = {"served": 21_000.0, "actor-gpu": 9_000.0}[plan.inference]
    return Rehearsal(
        num_actors=plan.num_actors, learner_threads=plan.learner_threads,
        actor_threads=plan.actor_threads, produced=rate, received=rate, trained=3 * rate,
        lag_versions=1.0,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def gpu(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    machine = Machine(tuple(range(8)), 1 << 36)
    monkeypatch.setattr("tianji.cli.verbs.plan.read_machine", lambda: machine)
    monkeypatch.setattr(
        "tianji.planning.resolve.places.find_device", lambda asked, is_worthwhile: "cuda:0"
    )
    monkeypatch.setattr("tianji.planning.rehearse.places.rehearse", rehearse)


def plan(*words):
    return main(["plan", "catch-pixels-ppo", "--num-envs", "64", *words])


def test_a_script_gets_the_rate_of_each_place(capfd):
    assert plan("--json") == 0
    found = json.loads(capfd.readouterr().out)
    assert set(found) == NAMES
    assert (found["device"], found["inference"], found["from_cache"]) == ("cuda:0", "served", False)
    assert found["predicted"] == {"produced": 21_000, "received": 21_000, "trained": 63_000}
    assert found["places"] == [
        {"inference": "served", "steps_per_s": 21_000, "failure": None},
        {"inference": "actor-gpu", "steps_per_s": 9_000, "failure": None},
        {"inference": "actor-cpu", "steps_per_s": 0, "failure": "actor-0: too slow."},
    ]
    assert any(text.startswith("Inference: served 21,000 steps/s") for text in found["reasons"])
    assert found["roles"]["actor"]["processes"] == found["num_actors"] > 1
    assert found["roles"]["inference"]["processes"] == 0, "it is in the learner's process"
    assert found["memory_bytes"] == found["memory"]["total"] > 2**20
    assert found["memory"]["gpu"] > 2**20
    assert found["memory"]["replay_bytes"] == 0


def test_a_person_reads_why_inference_is_where_it_is(capfd):
    assert plan() == 0
    said = " ".join(capfd.readouterr().err.split())
    for words in (
        "Trying inference served, place 1 of 3.",
        "learner, with the buffer and inference",
        "steps/s produced 21.0k received 21.0k trained 63.0k",
        "Inference: served 21,000 steps/s, actor-gpu 9,000. The run uses served",
        "actor-cpu was left out, because its test run failed: actor-0: too slow.",
        "A place failed, so that nothing is kept.",
        "GPU memory",
    ):
        assert words in said, words


def test_a_place_that_is_set_is_measured_once(capfd):
    for words in ("`tianji train` with the same settings uses it.", "--fresh measures again"):
        assert plan("--inference", "served") == 0
        assert words in " ".join(capfd.readouterr().err.split())


def test_a_simulation_is_of_costs_on_the_cpu(capfd):
    assert main(["simulate", "catch-pixels-ppo", "--inference", "served"]) == 2
    assert "Use --device cpu and --inference actor-cpu" in capfd.readouterr().err
