"""A run folder belongs to one process at a time, and says what happened whatever happened."""

import json
import shutil
import time
from pathlib import Path

import gymnasium as gym
import pytest

from tests.system.commands import DEADLINE_S, SMALL
from tests.system.runs import PPO, QUIET, run
from tianji.cli.main import main
from tianji.config.run import RunConfig
from tianji.display.curve import draw_curve
from tianji.errors import TianjiError, UsageError
from tianji.observe.run_log import read_lines
from tianji.run import resume_run, train_config
from tianji.run_folder.folder import RunFolder


def test_a_run_that_is_running_cannot_be_resumed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Path(run(algorithm=PPO, max_env_steps=300, engine="inline")["run_dir"])
    before = (folder / "config.yaml").read_text()
    with RunFolder(folder), pytest.raises(UsageError, match="is already running"):
        resume_run(folder, {"max_env_steps": 600})
    assert (folder / "config.yaml").read_text() == before
    assert resume_run(folder, {"max_env_steps": 600})["env_steps"] >= 600


def test_an_inline_run_that_fails_leaves_a_summary(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuntimeError, match="this world fails"):
        run(
            env="tianji.envs.worlds:Flaky", env_kwargs={"at_step": 50}, algorithm=PPO,
            engine="inline", run="run",
        )  # fmt: skip
    summary = json.loads((tmp_path / "runs" / "run" / "summary.json").read_text())
    assert summary["stopped_because"] == "failed"
    assert "this world fails" in summary["first_cause"]


def test_a_network_that_cannot_be_built_is_found_before_anything_starts(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    assert main(["train", *SMALL, "--model.factory", "nowhere:network", "--json"]) == 2
    assert "nowhere" in json.loads(capfd.readouterr().out)["error"]
    assert not (tmp_path / "runs").exists()


class Disturbing(gym.Wrapper):
    """CartPole that does things to the world outside in some of its steps."""

    def __init__(self, disturbances):
        """disturbances: what to do in which step; the environments of a run share them."""
        super().__init__(gym.make("CartPole-v1"))
        self._disturbances, self._steps = disturbances, 0

    def step(self, action):
        self._steps += 1
        if disturb := self._disturbances.pop(self._steps, None):
            disturb()
        return super().step(action)


def disturbed_run(disturbances):
    settings = {
        "env": "disturbing", "algorithm": PPO, "engine": "inline", "num_envs": 2, "run": "run",
        "observe": {**QUIET, "period_s": 1e-9}, "max_env_steps": 600,
    }  # fmt: skip
    return train_config(RunConfig.model_validate(settings), env=lambda: Disturbing(disturbances))


def wait_for_checkpoints(folder, count):
    """They are written in a thread, and a newer one takes the place of one that still waits."""
    deadline = time.monotonic() + DEADLINE_S
    while num_written(folder) < count and time.monotonic() < deadline:
        time.sleep(0.01)


def num_written(folder):
    kinds = [event["kind"] for event in read_lines(folder / "events.jsonl")]
    return kinds.count("checkpoint_written")


@pytest.mark.parametrize("how", ["deleted", "moved"])
def test_a_run_whose_folder_is_lost_says_so_at_once_and_saves_everything_anew(
    tmp_path, monkeypatch, how
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tianji.display.curve.draw_curve", draw_curve)
    folder, elsewhere = Path("runs/run"), tmp_path / "elsewhere"
    lose = {"deleted": lambda: shutil.rmtree(folder), "moved": lambda: folder.rename(elsewhere)}
    before = []

    def lose_folder():
        wait_for_checkpoints(folder, 1)
        before.extend(read_lines(folder / "metrics.jsonl"))
        lose[how]()

    summary = disturbed_run({100: lose_folder, 200: lambda: wait_for_checkpoints(folder, 2)})
    assert summary["stopped_because"] == "max_env_steps"
    records = list(read_lines(folder / "metrics.jsonl"))
    assert before and records[: len(before)] == before, "what was recorded before is still there"
    assert records[-1]["version"] == summary["version"]
    events = list(read_lines(folder / "events.jsonl"))
    lost = [event for event in events if event["kind"] == "folder_lost"]
    assert len(lost) == 1 and f"The run folder {folder} was {how}" in lost[0]["text"]
    saved = [event["text"] for event in events[events.index(lost[0]) :]]
    assert sum("Checkpoint v" in text for text in saved) >= 2, "at once, and at the end"
    for name in ("config.yaml", "plan.json", "summary.json", "curve.png"):
        assert (folder / name).exists(), name
    assert resume_run(folder, {"max_env_steps": 900}, env="CartPole-v1")["env_steps"] >= 900


def test_a_run_whose_place_is_taken_by_another_stops_and_leaves_it_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder, other = Path("runs/run"), Path("other")
    other.mkdir()
    (other / "config.yaml").write_text("another: run")

    def take():
        """Without a moment for the run's threads to find neither, and to make the folder again."""
        folder.rename("elsewhere")
        other.rename(folder)

    with pytest.raises(TianjiError, match="Another run uses its path now"):
        disturbed_run({100: take})
    assert [path.name for path in folder.iterdir()] == ["config.yaml"]
