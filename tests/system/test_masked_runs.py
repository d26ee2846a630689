"""Whole runs on an environment that refuses every illegal action, and ends the run at one."""

import pytest

from tests.system.runs import (
    APEX,
    DQN,
    IMPALA,
    PPO,
    PRIORITISED,
    QUIET,
    differences,
    resume,
    run,
    saved_state,
)
from tianji.config.overrides import make_config
from tianji.run import train_config

DOORS = {"env": "tianji.envs.doors:Doors", "env_kwargs": {"illegal": "refuse"}}
IN_OBSERVATIONS = {"mask": "observation", "illegal": "refuse"}
REPLAYED = {**PRIORITISED, "epsilon_start": 0.5}


def comparable(state):
    """All but what a clock says, and the environments, which the inline engine alone can save."""
    left_out = (".state.actors", ".state.progress.wall_s")
    return {
        name: value
        for name, value in state.items()
        if not name.startswith(left_out) and not name.endswith("row_ns")
    }


@pytest.mark.parametrize(
    ("algorithm", "num_actors"),
    [
        pytest.param(PPO, 1, id="ppo"),
        pytest.param(PPO, 2, id="ppo of two actors", marks=pytest.mark.slow),
        pytest.param(IMPALA, 2, id="impala", marks=pytest.mark.slow),
        pytest.param(REPLAYED, 2, id="dqn", marks=pytest.mark.slow),
    ],
)
def test_local_without_lag_equals_inline(algorithm, num_actors, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shared = {**DOORS, "algorithm": algorithm, "num_actors": num_actors}
    shared |= {"max_lag": 0, "max_env_steps": 1500}
    states = [
        comparable(saved_state(run(engine=engine, **shared)["run_dir"]))
        for engine in ("inline", "local")
    ]
    assert differences(*states) == []
    assert any(name.startswith(".weights") for name in states[0])


@pytest.mark.parametrize("algorithm", [PPO, DQN], ids=["ppo", "dqn"])
def test_2n_steps_equal_n_and_resume_and_n(algorithm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shared = {**DOORS, "algorithm": algorithm, "engine": "inline", "checkpoint": {"replay": True}}
    whole = run(run="whole", max_env_steps=2048, **shared)
    half = run(run="half", max_env_steps=1024, **shared)
    both = resume(half["run_dir"], max_env_steps=2048)
    one, other = (comparable(saved_state(each["run_dir"])) for each in (whole, both))
    weights = [name for name in one if name.startswith(".weights")]
    assert differences({n: one[n] for n in weights}, {n: other[n] for n in weights}) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "inference"),
    [
        pytest.param(APEX, "auto", id="apex"),
        pytest.param(PPO, "served", id="served-ppo"),
        pytest.param(APEX, "served", id="served-apex", marks=pytest.mark.slow),
    ],
)
def test_processes_and_servers_take_legal_actions_alone(
    algorithm, inference, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    summary = run(
        env="tianji.envs.doors:Doors", env_kwargs=IN_OBSERVATIONS, algorithm=algorithm,
        engine="local", inference=inference, max_env_steps=1500,
        evaluate={"period_s": 0.05, "episodes": 2},
    )  # fmt: skip
    assert summary["stopped_because"] == "max_env_steps", summary["first_cause"]
    assert summary["env_failures"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_with_masks_doors_are_opened_in_half_of_the_steps(algorithm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def steps_to_learn(mask, **kwargs):
        summary = train_config(
            make_config(
                env="tianji.envs.doors:Doors",
                env_kwargs=kwargs,
                action_mask=mask,
                algorithm=algorithm,
                engine="inline",
                learner_threads=1,
                run=f"{mask}-mask",
                target_return=7.5,
                max_env_steps=200_000,
                observe=QUIET,
            )
        )
        assert summary["stopped_because"] == "target_reached"
        return summary["env_steps"]

    assert 2 * steps_to_learn("auto", illegal="refuse") <= steps_to_learn("none")
