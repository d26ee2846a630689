"""Defaults: one rule set for all environments; what a person or a preset has set wins."""

import pytest

from tianji.config.overrides import make_config
from tianji.config.run import RunConfig
from tianji.config.schema import load_algorithm_config
from tianji.config.settings import list_settings


@pytest.mark.parametrize(("algorithm", "expected"), [("ppo", True), ("impala", True)])
def test_actor_critics_normalise_observations_and_rewards(algorithm, expected):
    normalize = make_config(env="Acrobot-v1", algorithm=algorithm).normalize
    assert (normalize.observations, normalize.rewards) == (expected, expected)


def test_dqn_takes_observations_and_rewards_as_they_are():
    normalize = make_config(env="Acrobot-v1", algorithm="dqn").normalize
    assert (normalize.observations, normalize.rewards) == (False, False)


@pytest.mark.parametrize("algorithm", ["ppo", "impala", "dqn"])
def test_no_default_reads_the_name_of_the_environment(algorithm):
    configs = [
        make_config(env=env, algorithm=algorithm)
        for env in ("CartPole-v1", "Pendulum-v1", "my_package:Maze")
    ]
    others = [config.model_dump(exclude={"env"}) for config in configs]
    assert others[0] == others[1] == others[2]


def test_what_a_person_sets_wins_over_the_algorithms_default():
    config = make_config(env="Acrobot-v1", normalize={"rewards": False})
    assert config.normalize.observations
    assert not config.normalize.rewards


def test_what_a_preset_sets_wins_over_the_algorithms_default():
    assert not make_config("cartpole-ppo").normalize.observations


def test_a_network_of_ones_own_gets_observations_as_they_are():
    config = make_config(env="Acrobot-v1", model={"factory": "mine:net"})
    assert not config.normalize.observations
    assert config.normalize.rewards


def test_defaults_are_filled_in_however_the_record_is_made():
    from_text = RunConfig.model_validate({"env": "A-v0", "algorithm": "ppo"})
    from_record = RunConfig(env="A-v0", algorithm=load_algorithm_config("ppo")(name="ppo"))
    assert from_text == from_record == RunConfig.model_validate(from_text.model_dump())
    assert from_text.normalize.observations


def test_settings_show_the_algorithms_own_defaults():
    def default(algorithm, path):
        settings = list_settings(load_algorithm_config(algorithm))
        return next(setting.default for setting in settings if setting.path == path)

    assert default("ppo", "normalize.observations") is True
    assert default("dqn", "normalize.observations") is False


def test_an_environment_by_name_gets_the_defaults_and_not_a_preset():
    by_name, preset = make_config(env="CartPole-v1"), make_config()
    assert preset.target_return == 475
    assert by_name.target_return is None
    assert by_name.algorithm.unroll_length != preset.algorithm.unroll_length
