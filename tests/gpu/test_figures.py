"""Figures of runs on a GPU: waits, uploads, where time goes. Graphs are recorded at the start."""

import json
from pathlib import Path

import pytest
import torch

from tests.fakes.specs import make_spec
from tests.system.runs import DQN, IMPALA, PPO, run
from tests.unit.engines.test_inline_engine import Watcher
from tianji.devices.graphs import Recorded
from tianji.engines.inline import InlineEngine
from tianji.engines.signals import StopRequest
from tianji.programs.one_group import program_for

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

PIXELS = "tianji.envs.worlds:Pixels"
ALGORITHMS = {"ppo": PPO, "impala": IMPALA, "dqn": DQN}
RARELY = {"period_s": 1000.0}


@pytest.mark.parametrize("engine", ["inline", "local"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_only_the_waits_of_the_learner_are_counted(name, engine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    summary = run(
        env=PIXELS, algorithm=ALGORITHMS[name], engine=engine, device="cuda", checkpoint=RARELY,
        inference="actor-gpu", max_env_steps=8192,
    )  # fmt: skip
    assert summary["gpu"]["synchronisations_per_version"] == pytest.approx(1.0, abs=0.1)
    assert summary["gpu"]["host_to_device_bytes_per_step"] >= 64, "frames are uploaded"


def test_the_time_of_updates_is_not_that_of_publishing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    large = {"name": "ppo", "unroll_length": 64, "epochs": 8, "minibatch_size": 512}
    summary = run(
        env=PIXELS, algorithm=large, engine="inline", device="cuda", checkpoint=RARELY,
        num_envs=32, max_env_steps=20_480,
    )  # fmt: skip
    record = json.loads((Path(summary["run_dir"]) / "metrics.jsonl").read_text().splitlines()[-1])
    parts = record["worked_s"]["learner"]
    assert parts["updates"] > parts["publishing"]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_graphs_are_recorded_before_the_first_step(name, tmp_path, monkeypatch):
    recorded, record = [], Recorded._record

    def noted(self, *args):
        recorded.append(self)
        return record(self, *args)

    monkeypatch.setattr(Recorded, "_record", noted)
    spec = make_spec(
        tmp_path, env=PIXELS, algorithm=ALGORITHMS[name], num_envs=8, num_actors=2,
        max_env_steps=2048, device="cuda",
    )  # fmt: skip
    watcher = Watcher()
    engine = InlineEngine(spec, program_for(spec.config, spec.plan), watcher)
    at_start = len(recorded)
    assert at_start >= 3, "a gradient, a step of the optimiser, inference of each actor"
    engine.run(StopRequest(), resume=False)
    assert len(recorded) == at_start
    assert any("recording CUDA graphs" in text for text in watcher.texts("note"))
