"""Replay on a GPU: it trains, says what it uploads, and is filled again by a resume."""

import json
from pathlib import Path

import pytest
import torch

from tests.system.runs import DQN, resume, run

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

PIXELS = "tianji.envs.worlds:Pixels"


def events(run_dir):
    lines = (Path(run_dir) / "events.jsonl").read_text().splitlines()
    return [json.loads(line)["text"] for line in lines]


@pytest.mark.parametrize("sampling", ["uniform", "prioritized"])
@pytest.mark.parametrize("engine", ["inline", "local"])
def test_a_run_trains_from_replay_on_the_gpu_and_fills_it_again(
    engine, sampling, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    settings = {**DQN, "replay_on": "gpu", "sampling": sampling}
    first = run(
        env=PIXELS, algorithm=settings, device="cuda", engine=engine, run="replay",
        max_env_steps=2048, checkpoint={"replay": False},
    )  # fmt: skip
    assert first["stopped_because"] == "max_env_steps"
    assert first["gpu"]["host_to_device_bytes_per_step"] >= 64, "each frame is uploaded"
    assert not any("filled again" in text for text in events(first["run_dir"]))
    last = resume("runs/replay", max_env_steps=4096)
    assert last["updates"] > first["updates"]
    assert any("filled again" in text for text in events(last["run_dir"]))


def test_a_store_that_is_saved_is_found_again_on_the_gpu_and_on_the_host(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = {**DQN, "replay_on": "gpu"}
    run(env=PIXELS, algorithm=settings, device="cuda", run="saved", max_env_steps=2048)
    resume("runs/saved", max_env_steps=3072)
    resume("runs/saved", max_env_steps=4096, algorithm={"replay_on": "host"})
    assert not any("filled again" in text for text in events("runs/saved"))


def test_replay_on_the_gpu_gives_the_transitions_of_replay_on_the_host(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = []
    for place in ("gpu", "host"):
        made = run(
            env=PIXELS, algorithm={**DQN, "replay_on": place}, device="cuda", engine="inline",
            run=place, max_env_steps=512, model={"precision": "float32"},
        )  # fmt: skip
        found.append([made[key] for key in ("env_steps", "updates", "episodes", "mean_return_100")])
    assert found[0] == found[1]
