"""Runs that must reach a number: a little in the short form, what a preset says in the slow one."""

import statistics
from pathlib import Path

import pytest

from tests.system.commands import Command
from tests.system.runs import QUIET
from tianji.cli.pages.program import example_preset
from tianji.config.overrides import make_config
from tianji.programs.registry import STYLES
from tianji.run import train_config
from tianji.trained.evaluate import evaluate_run

LIMITS = {
    "cartpole-ppo": {"target_return": 300, "max_env_steps": 300_000},
    "cartpole-dqn": {"target_return": 100, "max_env_steps": 100_000},
    "cartpole-impala": {"target_return": 150, "max_env_steps": 300_000},
    "cartpole-a3c": {"target_return": 150, "max_env_steps": 200_000},
    "cartpole-gorila": {"target_return": 60, "max_env_steps": 100_000},
}
PRESETS = (
    "cartpole-ppo", "cartpole-dqn", "cartpole-apex", "cartpole-impala", "cartpole-a3c",
    "cartpole-gorila", "catch-pixels-dqn", "acrobot-ppo",
    "lunarlander-dqn", "hopper-ppo", "rennala-nigt", "malenia-nigt", "sync-nigt", "afedpg",
    "rennala-pg", "pendulum-sac",
    "acrobot-rennala-nigt", "hopper-rennala-nigt", "humanoid-rennala-nigt",
    "walker2d-rennala-nigt", "reacher-rennala-nigt", "hopper-malenia-nigt",
)  # fmt: skip


@pytest.mark.parametrize("preset", LIMITS)
def test_a_preset_learns_in_the_local_engine(preset, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    summary = train_config(make_config(preset, observe=QUIET, **LIMITS[preset]))
    assert summary["stopped_because"] == "target_reached", summary["best_mean_return_100"]
    assert summary["discarded_items"] == 0
    assert summary["lag_versions"]["max"] <= make_config(preset).max_lag


def on_pixels(algorithm, **values):
    """Catch a ball: -0.7 for a random policy, 1 for the best."""
    more = {"sampling": "prioritized", "epsilon_final": 0.01, "epsilon_decay_steps": 8_000}
    return make_config(
        env="tianji.envs.worlds:Pixels", algorithm=algorithm, num_envs=16, unroll_length=8,
        updates_per_version=4, batch_size=64, learning_rate=1e-3, replay_size=20_000,
        target_period_updates=100, observe=QUIET, **(more if algorithm == "dqn" else {}), **values,
    )  # fmt: skip


@pytest.mark.parametrize("algorithm", ["dqn", "apex"])
def test_replay_learns_from_pixels(algorithm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = on_pixels(
        algorithm, engine="inline", learner_threads=1, target_return=0.5, max_env_steps=60_000
    )
    summary = train_config(config)
    assert summary["stopped_because"] == "target_reached", summary["best_mean_return_100"]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("algorithm", ["dqn", "apex"])
def test_replay_learns_to_catch_from_pixels(algorithm, seed, tmp_path, monkeypatch):
    """On processes; how many steps Ape-X takes depends on the speeds of both sides."""
    monkeypatch.chdir(tmp_path)
    config = on_pixels(algorithm, seed=seed, target_return=0.9, max_env_steps=1_000_000)
    summary = train_config(config)
    assert summary["stopped_because"] == "target_reached", summary["best_mean_return_100"]
    assert summary["discarded_items"] == 0


FROM_PIXELS = {
    "a3c": {"optimizer": "adam"},
    "gorila": {
        "unroll_length": 2, "batch_size": 64, "replay_size": 20_000, "target_period_updates": 100,
        "epsilon_final": 0.01, "epsilon_decay_steps": 8_000,
    },
}  # fmt: skip


@pytest.mark.parametrize("algorithm", FROM_PIXELS)
def test_gradients_of_actors_learn_from_pixels(algorithm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = make_config(
        env="tianji.envs.worlds:Pixels", algorithm=algorithm, engine="inline", observe=QUIET,
        num_envs=16, num_actors=2, learner_threads=1, learning_rate=1e-3, target_return=0.5,
        max_env_steps=60_000, **FROM_PIXELS[algorithm],
    )  # fmt: skip
    summary = train_config(config)
    assert summary["stopped_because"] == "target_reached", summary["best_mean_return_100"]


@pytest.mark.parametrize("preset", ["rennala-nigt", "malenia-nigt", "sync-nigt", "afedpg"])
def test_gathered_gradients_learn(preset, tmp_path, monkeypatch):
    """A random policy has 22. Episodes that end early cost nothing here, and nobody races."""
    monkeypatch.chdir(tmp_path)
    config = make_config(
        preset, engine="inline", estimate="episodes", target_return=80, max_env_steps=100_000,
        observe=QUIET,
    )  # fmt: skip
    summary = train_config(config)
    assert summary["stopped_because"] == "target_reached", summary["best_mean_return_100"]


@pytest.mark.parametrize("algorithm", ["ppo", "impala"])
@pytest.mark.parametrize(
    ("world", "gamma", "target"),
    [("Continuous", 0.5, -2.0), ("MultiDiscreteWorld", 0.5, 7.0), ("DictWorld", 0.95, 0.6)],
)
def test_every_kind_of_action_and_observation_learns(
    algorithm, world, gamma, target, tmp_path, monkeypatch
):
    """Without looking at the world, the best are -3.3, 4.2 and 0."""
    monkeypatch.chdir(tmp_path)
    few = {"epochs": 4, "minibatch_size": 128} if algorithm == "ppo" else {}
    config = make_config(
        env=f"tianji.envs.worlds:{world}", algorithm=algorithm, engine="inline", observe=QUIET,
        learner_threads=1, num_envs=16, unroll_length=32, max_env_steps=60_000,
        learning_rate=2e-3, gamma=gamma,
        target_return=target, **few,
    )  # fmt: skip
    summary = train_config(config)
    assert summary["stopped_because"] == "target_reached", summary["best_mean_return_100"]


def test_sac_learns_a_continuous_action(tmp_path, monkeypatch):
    """Without looking at the world, the best is -3.3; with the right actions it is 0."""
    monkeypatch.chdir(tmp_path)
    config = make_config(
        env="tianji.envs.worlds:Continuous", algorithm="sac", engine="inline", observe=QUIET,
        learner_threads=1, hidden=(64, 64), batch_size=64, updates_per_version=16, gamma=0.5,
        learning_rate=1e-3, target_return=-0.7, max_env_steps=8000,
    )  # fmt: skip
    summary = train_config(config)
    assert summary["stopped_because"] == "target_reached", summary["best_mean_return_100"]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sac_swings_the_pendulum_up_in_serial_training(seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = make_config(
        "pendulum-sac", seed=seed, engine="inline", observe=QUIET, max_env_steps=15_000,
        target_return=None,
    )  # fmt: skip
    run_dir = train_config(config)["run_dir"]
    returns = evaluate_run(Path(run_dir), 20, seed=1, checkpoint="latest")["returns"]
    assert statistics.fmean(returns) > -250


def test_the_defaults_learn_from_the_name_of_an_environment(tmp_path, monkeypatch):
    """Random actions have -1170, and policies that were trained on rewards as they are, -1000."""
    monkeypatch.chdir(tmp_path)
    config = make_config(
        env="Pendulum-v1", target_return=-700, max_env_steps=150_000, observe=QUIET
    )
    summary = train_config(config)
    assert summary["stopped_because"] == "target_reached", summary["best_mean_return_100"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_defaults_learn_to_land(seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = make_config(env="LunarLander-v3", seed=seed, max_env_steps=500_000, observe=QUIET)
    assert train_config(config)["mean_return_100"] > 150


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_learns_what_its_file_says(preset, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    summary = train_config(make_config(preset, observe=QUIET))
    assert summary["stopped_because"] == "target_reached", summary["best_mean_return_100"]


def soak(tmp_path, seconds):
    """A run over some time; returns its records."""
    words = ["train", "cartpole-dqn", "--target-return", "100000", "--max-env-steps", "100000000",
             "--max-wall-s", str(seconds), "--replay-size", "4096", "--run", "run",
             "--checkpoint.period-s", "0.5", "--observe.period-s", "0.1",
             "--plan.source", "rule"]  # fmt: skip
    command = Command(tmp_path, *words)
    code, _, err = command.finish(after_s=seconds)
    assert code == 0, err
    return command.records()


def grown_bytes(records, role):
    """Growth of a role's memory from the middle of the run to its end."""
    sizes = [record["rss_bytes"][role] for record in records if role in record["rss_bytes"]]
    return sizes[-1] - sizes[len(sizes) // 2]


@pytest.mark.slow
def test_memory_is_flat_over_a_short_run(tmp_path):
    records = soak(tmp_path, 5)
    for role in ("learner", "actor-0"):
        assert grown_bytes(records, role) < 8 << 20, role


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_memory_is_flat_over_ten_minutes(tmp_path):
    records = soak(tmp_path, 600)
    for role in ("learner", "actor-0"):
        assert grown_bytes(records, role) < 8 << 20, role


STYLES_LEARN = {
    "apex": {"preset": "cartpole-apex", "target_return": 150},
    "seed": {"max_env_steps": 1_000_000},
}
"""Where a style does not learn what the example learns: the ladder of Ape-X explores for ever."""


@pytest.mark.slow
@pytest.mark.parametrize("style", STYLES)
def test_every_style_learns(style, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = {"preset": example_preset(style), "target_return": 300, **STYLES_LEARN.get(style, {})}
    summary = train_config(make_config(style=style, observe=QUIET, **values))
    assert summary["stopped_because"] == "target_reached", summary["best_mean_return_100"]
