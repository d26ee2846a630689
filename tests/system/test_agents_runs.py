"""Whole runs with many agents and one policy; agents leave and join within an episode."""

from pathlib import Path

import pytest

from tests.system.runs import DQN, PPO, QUIET, differences, resume, run, saved_state
from tianji.config.overrides import make_config
from tianji.run import train_config
from tianji.trained.evaluate import evaluate_run
from tianji.trained.export import export_run

EXITS = {"env": "pettingzoo:tianji.envs.exits"}


def learned(state):
    return {name: value for name, value in state.items() if name.startswith(".weights")}


def test_agents_that_leave_and_join_learn_with_one_policy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    summary = train_config(
        make_config(
            algorithm="ppo",
            engine="inline",
            learner_threads=1,
            target_return=0.8,
            max_env_steps=40_000,
            observe=QUIET,
            **EXITS,
        )
    )
    assert summary["stopped_because"] == "target_reached", summary["best_mean_return_100"]
    report = evaluate_run(Path(summary["run_dir"]), episodes=10, seed=0)
    assert report["episodes"] == 10 and report["mean"] > 0.7


@pytest.mark.slow
def test_the_shared_policy_is_exported_like_any_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    summary = run(engine="inline", algorithm=PPO, max_env_steps=500, **EXITS)
    assert export_run(Path(summary["run_dir"]))["max_difference"] == 0.0


@pytest.mark.parametrize(
    ("algorithm", "num_actors"),
    [
        pytest.param(PPO, 1, id="ppo"),
        pytest.param(PPO, 2, id="ppo of two actors", marks=pytest.mark.slow),
        pytest.param(DQN, 2, id="dqn", marks=pytest.mark.slow),
    ],
)
def test_local_without_lag_equals_inline(algorithm, num_actors, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shared = {**EXITS, "algorithm": algorithm, "num_actors": num_actors}
    shared |= {"max_lag": 0, "max_env_steps": 1500}
    one, other = (
        learned(saved_state(run(engine=engine, **shared)["run_dir"]))
        for engine in ("inline", "local")
    )
    assert one and differences(one, other) == []


def test_2n_steps_equal_n_and_resume_and_n(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shared = {**EXITS, "algorithm": PPO, "engine": "inline"}
    whole = run(run="whole", max_env_steps=1600, **shared)
    half = run(run="half", max_env_steps=800, **shared)
    both = resume(half["run_dir"], max_env_steps=1600)
    one, other = (learned(saved_state(each["run_dir"])) for each in (whole, both))
    assert one and differences(one, other) == []


def test_an_environment_of_pettingzoo_itself_is_trained(tmp_path, monkeypatch):
    """Walkers that fall leave; the others go on, until the package falls."""
    name = "pettingzoo.sisl.multiwalker_v9"
    pytest.importorskip(name, reason="needs pettingzoo and box2d", exc_type=ImportError)
    monkeypatch.chdir(tmp_path)
    summary = run(
        engine="inline",
        algorithm={**PPO, "unroll_length": 64},
        env=f"pettingzoo:{name}",
        env_kwargs={"terminate_on_fall": False, "max_cycles": 100},
        num_envs=6,
        max_env_steps=2_000,
    )
    assert summary["stopped_because"] == "max_env_steps" and summary["updates"] > 0
    assert summary["episodes"] >= 6, "each of six walkers has episodes of its own"
    report = evaluate_run(Path(summary["run_dir"]), episodes=3, seed=0)
    assert report["episodes"] == 3
