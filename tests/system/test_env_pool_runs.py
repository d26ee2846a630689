"""Runs on EnvPool's tasks."""

import pytest

from tests.system.runs import QUIET, run
from tianji.config.overrides import make_config
from tianji.run import train_config

pytest.importorskip("envpool", reason="needs the extra `envpool`")

PPO = {"name": "ppo", "unroll_length": 4, "minibatch_size": 16, "epochs": 1}


@pytest.mark.parametrize("task", ["Pong-v5", "CartPole-v1", "Hopper-v5", "CarRacing-v3"])
@pytest.mark.parametrize("engine", ["inline", "local"])
def test_a_task_is_trained_on(task, engine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    summary = run(
        env=f"envpool:{task}", algorithm=PPO, engine=engine, num_envs=4, num_actors=2,
        emulator_threads=2, max_env_steps=64, observe=QUIET,
    )  # fmt: skip
    assert summary["stopped_because"] == "max_env_steps"
    assert summary["updates"] > 0 and summary["restarts"] == 0


def test_cartpole_of_envpool_is_learned(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    summary = train_config(
        make_config(
            "cartpole-ppo", env="envpool:CartPole-v1", target_return=200, max_env_steps=300_000,
            observe=QUIET,
        )
    )  # fmt: skip
    assert summary["stopped_because"] == "target_reached", summary["best_mean_return_100"]
