"""What a run is told to expect: what a preset has reached, and whether the run has its settings."""

import pytest

from tianji.cli.main import main
from tianji.cli.pages.expected import expected
from tianji.config.overrides import resolve
from tianji.config.run import RunConfig
from tianji.config.values import from_mapping

OTHERS = "That was with its own settings; those of this run are others."


def test_a_run_of_the_preset_is_told_what_it_has_reached():
    machine = {"seed": 7, "max_env_steps": 9000, "num_actors": 2, "engine": "inline", "run": "it"}
    config = resolve("cartpole-ppo", from_mapping(machine)).config
    assert expected(config).startswith("Preset 'cartpole-ppo' has reached")
    assert OTHERS not in expected(config)


@pytest.mark.parametrize(
    "values",
    [
        {"gamma": 0.5}, {"num_envs": 64}, {"hidden": (8,)}, {"normalize.rewards": True},
        {"num_groups": 2, "combine": "average"}, {"learners_per_group": 2}, {"lag_target": 0},
        {"balance": "blocking"}, {"style": "lock-step"},
    ],
)  # fmt: skip
def test_a_run_with_other_settings_is_told_that_they_are_others(values):
    said = expected(resolve("cartpole-ppo", from_mapping(values)).config)
    assert OTHERS in said and said.endswith("`tianji train cartpole-ppo` uses them.")
    assert OTHERS in expected(RunConfig(env="CartPole-v1", algorithm="ppo"))


def test_where_a_replay_store_lies_does_not_matter():
    config = resolve("cartpole-dqn", from_mapping({"replay_on": "host"})).config
    assert expected(config) and OTHERS not in expected(config)


def test_nothing_is_told_where_nobody_has_measured():
    assert expected(RunConfig(env="tianji.envs.worlds:Counting", algorithm="ppo")) == ""


def test_a_refused_run_is_told_nothing_and_an_accepted_one_at_its_start(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    line = ["train", "--env", "CartPole-v1", "--algorithm", "dqn"]
    for seeds in ([], ["--seeds", "2"]):
        assert main([*line, "--model.memory", "gru", *seeds]) == 2
        assert "has reached" not in capfd.readouterr().err
    small = ["--engine", "inline", "--max-env-steps", "1100", "--observe.display", "plain"]
    assert main([*line, *small]) == 0
    said = " ".join(capfd.readouterr().err.split())
    assert "zoo: Preset 'cartpole-dqn' has reached" in said and OTHERS in said
