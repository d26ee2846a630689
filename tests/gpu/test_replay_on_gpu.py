"""Replay on a GPU: it trains, says what it uploads, and is filled again by a resume."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.system.runs import DQN, resume, run
from tianji.buffer.stores.device_observations import MOST_STAGED, DeviceObservations
from tianji.devices.waits import WAITS
from tianji.types import Field

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


def test_writing_does_not_wait_for_a_busy_gpu():
    field = Field("obs", "float32", (3,))
    memory = DeviceObservations(torch.device("cuda"), field, (1, MOST_STAGED, 1, 3), 0)
    rows = np.arange(3.0 * MOST_STAGED, dtype=np.float32).reshape(MOST_STAGED, 1, 1, 3)
    pinned = [torch.empty(3, pin_memory=True) for _ in range(MOST_STAGED)]
    del pinned  # torch keeps it: making pinned memory might wait for the GPU
    torch.cuda.synchronize()
    before = WAITS.count
    torch.cuda._sleep(1_000_000_000)  # cycles: about half a second
    for row, values in enumerate(rows):
        memory.write(0, row, values)
    assert WAITS.count == before
    memory.write(0, 0, rows[0])
    assert WAITS.count == before + 1, "only so many are on their way"
    assert np.array_equal(memory.read(0, 0, MOST_STAGED), rows[:, 0])
