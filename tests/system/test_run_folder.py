"""A run folder belongs to one process at a time, and says what happened whatever happened."""

import json
from pathlib import Path

import pytest

import tianji
from tests.system.commands import SMALL, Command
from tests.system.runs import PPO, QUIET, run
from tianji.errors import TianjiError, UsageError
from tianji.run import _only_one, resume_run


def test_a_run_that_is_running_cannot_be_resumed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Path(run(algorithm=PPO, max_env_steps=300, engine="inline")["run_dir"])
    before = (folder / "config.yaml").read_text()
    with _only_one(folder), pytest.raises(UsageError, match="running already"):
        resume_run(folder, {"max_env_steps": 600})
    assert (folder / "config.yaml").read_text() == before
    assert resume_run(folder, {"max_env_steps": 600})["env_steps"] >= 600


def test_a_failed_run_raises_in_python_and_names_the_cause(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        TianjiError, match=r"EnvironmentFailed: .*this world fails.*supervise\.max_restarts"
    ):
        tianji.train(
            env="tianji.envs.worlds:Flaky", env_kwargs={"at_step": 5}, num_envs=4, num_actors=1,
            observe=QUIET, supervise={"backoff_s": 0.01},
        )  # fmt: skip


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


def test_a_run_that_fails_late_says_what_it_had_done(tmp_path):
    words = ["--env", "tianji.envs.worlds:NaNRewards", "--env-kwargs.at-step", "3000"]
    code, out, _ = Command(tmp_path, "train", *SMALL, *words, "--json").finish()
    summary = json.loads(out)
    assert code == 1
    assert summary["env_steps"] > 0 and summary["updates"] > 0


def test_a_network_that_cannot_be_built_is_found_before_anything_starts(tmp_path):
    words = [*SMALL, "--model.factory", "nowhere:network", "--json"]
    code, out, _ = Command(tmp_path, "train", *words).finish()
    assert code == 2
    assert "nowhere" in json.loads(out)["error"]
    assert not (tmp_path / "runs").exists()
