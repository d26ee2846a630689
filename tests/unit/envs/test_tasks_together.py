"""Environments that actors of one run have side by side."""

import pytest

from tianji.envs.build import name_of, probe_all, to_tasks
from tianji.envs.worlds import Chain, Counting
from tianji.errors import UsageError


def easy():
    return Chain(length=3)


def same_step(num_envs):
    import gymnasium as gym

    def make():
        return Chain(length=3)

    return gym.vector.SyncVectorEnv(
        [make] * num_envs, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP
    )


def test_one_environment_is_looked_at_as_it_is():
    assert probe_all(easy, {}).spaces.observation.shape == (4,)


def test_environments_that_differ_are_named_with_what_differs():
    with pytest.raises(UsageError) as error:
        probe_all((easy, Counting), {})
    text = str(error.value)
    assert f"{__name__}:easy" in text
    assert "tianji.envs.worlds:Counting" in text
    assert "observation space" in text and "(4,)" in text


def test_actions_must_be_the_same_too():
    ends = ("tianji.envs.worlds:Continuous", "tianji.envs.worlds:Continuous")
    assert probe_all(ends, {"size": 2}).spaces.action.shape == (2,)
    with pytest.raises(UsageError, match="action space"):
        probe_all((_two_actions, _three_actions), {})


def _two_actions():
    return Chain(length=3)


def _three_actions():
    from gymnasium.spaces import Discrete

    env = Chain(length=3)
    env.action_space = Discrete(3)
    return env


def test_there_is_room_for_final_observations_where_any_keeps_them():
    assert not probe_all((easy, easy), {}).keeps_final
    assert probe_all((easy, same_step), {}).keeps_final


def test_an_environment_that_comes_twice_is_looked_at_once():
    made = []

    def counted():
        made.append(1)
        return Chain(length=3)

    probe_all((counted, easy, counted), {})
    assert len(made) == 1


def test_tasks_have_the_names_of_the_config():
    assert to_tasks(("a",), easy) == {"a": easy}
    assert to_tasks(("a", "b"), (easy, Chain)) == {"a": easy, "b": Chain}


def test_a_factory_is_named_after_where_it_was_defined():
    assert name_of("CartPole-v1") == "CartPole-v1"
    assert name_of(easy) == f"{__name__}:easy"
