"""What is seen of an environment before training."""

import numpy as np
import pytest
from gymnasium.spaces import Box

from tianji.defaults.look import look
from tianji.envs.worlds import Continuous
from tianji.errors import UsageError

WORLDS = "tianji.envs.worlds"


class Unbounded(Continuous):
    def __init__(self):
        super().__init__(size=2)
        self.action_space = Box(np.array([-1, -np.inf]), np.array([1, np.inf]), dtype=np.float32)


class HalfBounded(Continuous):
    def __init__(self, low, high):
        super().__init__(size=2)
        self.action_space = Box(np.array([-1, low]), np.array([1, high]), dtype=np.float32)


def test_actions_are_choices_or_numbers_with_bounds_or_without():
    assert look({"env": f"{WORLDS}:Counting"}).actions == "choices"
    assert look({"env": f"{WORLDS}:Continuous"}).actions == "bounded"
    assert look({"env": "mine"}, Unbounded).actions == "unbounded"


@pytest.mark.parametrize(("low", "high"), [(-1, np.inf), (-np.inf, 1)])
def test_actions_with_one_bound_are_unbounded(low, high):
    assert look({"env": "mine"}, lambda: HalfBounded(low, high)).actions == "unbounded"


def test_images_agents_step_times_and_rewards_are_seen():
    assert look({"env": f"{WORLDS}:Pixels"}).sees_images
    agents = look({"env": "pettingzoo:tianji.envs.exits", "env_kwargs": {"num_agents": 5}})
    assert agents.num_agents == 5 and not agents.sees_images
    assert agents.rewards.depend_on_state and not agents.are_rewards_silent
    assert agents.step_s > 0


def test_an_environment_that_does_not_exist_is_a_mistake_of_the_person():
    with pytest.raises(UsageError, match="NoSuchWorld"):
        look({"env": "NoSuchWorld-v0"})
