"""Another number of actors in the middle of a run: by a resume, or by a better plan on the way."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.system.runs import DQN, PPO, resume, run, saved_state
from tianji.channels.gauges import Gauge
from tianji.config.machine import read_machine
from tianji.engines.supervise.imbalance import Imbalances
from tianji.planning.resolve.resolve import resolve
from tianji.reports import ImbalanceReport


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rewards(state):
    """The rewards of the steps that the store holds, by environment."""
    items = ".state.buffer.store.items"
    ends = np.cumsum(state[f"{items}.rows"])
    lanes = [
        [lane[:-1] for lane in np.split(state[f"{items}.arrays.{name}"], ends[:-1])]
        for name in ("reward", "valid")
    ]  # the step after the last observation is not made yet
    return [
        reward[valid[:, env], env].tolist()
        for reward, valid in zip(*lanes, strict=True)
        for env in range(reward.shape[1])
    ]


@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 2)])
def test_a_resume_with_other_actors_keeps_what_was_stored(before, after):
    shared = {"algorithm": DQN, "engine": "inline", "env": "tianji.envs.worlds:Counting"}
    half = run(run="half", max_env_steps=600, num_actors=before, **shared)
    stored = rewards(saved_state(half["run_dir"]))
    resumed = resume(half["run_dir"], max_env_steps=632, num_actors=after)
    again = rewards(saved_state(resumed["run_dir"]))
    assert resumed["version"] == half["version"] + 1, "the store came back full: no second warm-up"
    assert len(stored) == len(again) == 8
    for before_it, after_it in zip(stored, again, strict=True):
        assert after_it[: len(before_it)] == before_it
        assert len(after_it) == len(before_it) + DQN["unroll_length"]


def test_no_round_is_made_again_with_other_actors():
    half = run(run="half", max_env_steps=1000, num_actors=2, algorithm=PPO, engine="inline")
    rounds = saved_state(half["run_dir"])[".state.buffer.rounds"]
    resumed = resume(half["run_dir"], max_env_steps=half["env_steps"] + 1, num_actors=4)
    assert saved_state(resumed["run_dir"])[".state.buffer.rounds"] == [max(rounds) + 1] * 4


class TwoActors:
    """Promises more than the plan in use."""

    note, changes = "Two actors promise more.", 1

    def __init__(self, planned):
        asked = planned.config.model_copy(update={"num_actors": 2})
        self.plan = resolve(asked, read_machine(), planned.probe)
        self.records = []

    def __call__(self, record):
        self.records.append(record)
        return len(self.records) == 1

    def take(self):
        return self.plan


@pytest.fixture
def imbalance_at_once(monkeypatch):
    """The engine finds one at its first look after a version, and asks."""
    look = Imbalances.look

    def look_and_find(self):
        look(self)
        if self.is_replan_due or self._replan is None or not self._learner[Gauge.VERSION]:
            return None
        self.is_replan_due = self._replan({"is_over": False})
        return ImbalanceReport(
            kind="imbalance", role="supervisor", text="It is slow.", record={"is_over": False}
        )

    monkeypatch.setattr(Imbalances, "look", look_and_find)
    monkeypatch.setattr(
        "tianji.planning.replan.replanner_for", lambda planned, env, machine: TwoActors(planned)
    )


def test_a_run_changes_to_a_better_plan_on_the_way(imbalance_at_once):
    summary = run(
        run="it", algorithm=DQN, num_actors=1, max_env_steps=8000,
        plan={"replan": True, "source": "rule"},
    )  # fmt: skip
    folder = Path(summary["run_dir"])
    assert summary["stopped_because"] == "max_env_steps"
    assert summary["env_steps"] >= 8000
    assert summary["lag_versions"]["max"] <= 1
    assert json.loads((folder / "plan.json").read_text())["num_actors"] == 2
    assert set(summary["busy_share"]) >= {"actor-0", "actor-1"}
    assert "Two actors promise more." in (folder / "events.jsonl").read_text()
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    versions = [json.loads(line)["version"] for line in lines]
    assert versions == sorted(versions)
