"""A run moves between a GPU and a machine without one: it resumes, evaluates and exports there."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from tests.system.runs import DQN, PPO, resume, run, saved_state

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

PIXELS = "tianji.envs.worlds:Pixels"
ALGORITHMS = {"ppo": PPO, "impala": {"name": "impala", "unroll_length": 16}, "dqn": DQN}


def command(*words):
    """Run a command as on a machine that has no GPU."""
    return subprocess.run(
        [sys.executable, "-m", "tianji", *words, "--json"],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def without_gpu(*words):
    """Return the JSON of such a command."""
    done = command(*words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_run_goes_on_without_its_gpu_and_with_it_again(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = run(env=PIXELS, algorithm=ALGORITHMS[name], run="moved", max_env_steps=1024)
    assert first["device"] == "cuda:0"
    evaluated = without_gpu("eval", "moved", "--episodes", "2")
    assert evaluated["episodes"] == 2
    if find_spec("onnxruntime") and find_spec("onnxscript"):
        without_gpu("export", "moved")
    resumed = without_gpu("resume", "moved", "--max-env-steps", "2048")
    assert (resumed["device"], resumed["gpu"]) == ("cpu", None)
    assert resumed["updates"] > first["updates"]
    last = resume(Path("runs/moved"), max_env_steps=3072)
    assert last["device"] == "cuda:0"
    assert last["updates"] > resumed["updates"]


def test_what_a_gpu_has_saved_is_what_a_cpu_would_have_saved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shapes = {}
    for device in ("cuda", "cpu"):
        settings = {"engine": "inline", "device": device, "run": device, "max_env_steps": 512}
        run(env=PIXELS, algorithm=PPO, num_actors=1, **settings)
        saved = saved_state(Path("runs") / device)
        shapes[device] = {
            name: (value.shape, value.dtype)
            for name, value in saved.items()
            if hasattr(value, "dtype") and name.startswith((".weights", ".state.update"))
        }
    assert shapes["cuda"] == shapes["cpu"]


def test_a_gpu_that_was_asked_for_by_name_is_missed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(env=PIXELS, algorithm=PPO, device="cuda", run="moved", max_env_steps=512)
    more = ["resume", "moved", "--max-env-steps", "1024"]
    done = command(*more)
    assert done.returncode == 2
    assert "--device cpu" in done.stderr
    assert without_gpu(*more, "--device", "cpu")["device"] == "cpu"
