"""Tasks that only a memory solves: quick ones in the short form, those of the docs in the slow."""

import pytest

from tests.system.runs import QUIET
from tianji.config.overrides import make_config
from tianji.run import train_config

MAZE = "tianji.envs.remembering:TMaze"
PPO = {"algorithm": "ppo", "minibatch_size": 256, "epochs": 4, "learning_rate": 2e-3}
IMPALA = {"algorithm": "impala", "learning_rate": 2e-3}


def train_on_a_short_maze(memory, **values):
    config = make_config(
        env=MAZE, env_kwargs={"length": 5}, engine="inline", learner_threads=1, num_envs=16,
        unroll_length=32, observe=QUIET, model={"memory": memory}, target_return=0.9, **values,
    )  # fmt: skip
    return train_config(config)


@pytest.mark.parametrize(
    ("memory", "algorithm"),
    [("gru", PPO), ("lstm", PPO), ("gru", IMPALA)],
    ids=["ppo-gru", "ppo-lstm", "impala-gru"],
)
def test_the_first_observation_is_remembered(memory, algorithm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    summary = train_on_a_short_maze(memory, max_env_steps=60_000, **algorithm)
    assert summary["stopped_because"] == "target_reached", summary["best_mean_return_100"]


def test_without_a_memory_turns_are_guessed(tmp_path, monkeypatch):
    """A guess has a mean of 0, and the mean of 100 guesses a deviation of 0.1."""
    monkeypatch.chdir(tmp_path)
    summary = train_on_a_short_maze("none", max_env_steps=20_000, **PPO)
    assert summary["best_mean_return_100"] < 0.6


LONG_MAZE = {
    "env": MAZE, "algorithm": "ppo", "num_envs": 32, "unroll_length": 64, "minibatch_size": 512,
    "epochs": 6, "learning_rate": 1e-3, "entropy": 0.01, "target_return": 0.9,
    "max_env_steps": 500_000,
}  # fmt: skip
TASKS = {"cartpole": {"preset": "cartpole-memory-ppo"}, "maze": LONG_MAZE}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_memory_solves_what_a_policy_without_one_does_not(task, seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shared = {**TASKS[task], "seed": seed, "observe": QUIET}
    with_memory = train_config(make_config(**shared, model={"memory": "gru"}))
    assert with_memory["stopped_because"] == "target_reached", with_memory["best_mean_return_100"]
    without = train_config(make_config(**shared, model={"memory": "none"}))
    assert without["stopped_because"] == "max_env_steps"
    assert without["best_mean_return_100"] < (0.6 if task == "maze" else 200)
