"""A first look at rewards."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from tianji.envs import rewards
from tianji.envs.build import probe
from tianji.envs.rewards import RewardLook


class Walk(gym.Env):
    """A position that actions change; the reward is what `reward_of` says."""

    observation_space = Box(-np.inf, np.inf, (1,), np.float32)

    def __init__(self, action_space, reward_of, ends_at=None):
        self.action_space, self.reward_of, self.ends_at = action_space, reward_of, ends_at
        self.place, self.num_steps = 0.0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.num_steps = 0.0, 0
        return np.array([self.place], np.float32), {}

    def step(self, action):
        self.place += float(np.sum(action))
        self.num_steps += 1
        ended, limit = self.num_steps == self.ends_at, self.num_steps >= 50
        reward = self.reward_of(action, self.place)
        return np.array([self.place], np.float32), reward, ended, limit, {}


FORCE, CHOICE = Box(-1.0, 1.0, (2,), np.float32), Discrete(3)
COST = lambda action, _: -0.1 * float(np.square(action).sum())  # noqa: E731


def look(*given):
    return probe(lambda: Walk(*given), {}, looks_at_rewards=True).rewards


@pytest.mark.parametrize("actions", [FORCE, CHOICE])
@pytest.mark.parametrize("reward_of", [COST, lambda *_: -1.0, lambda *_: 0.0])
def test_costs_and_constants_say_nothing_about_the_state(actions, reward_of):
    found = look(actions, reward_of)
    assert not found.depend_on_state
    assert found.is_silent == (found.num_steps >= rewards.LEAST_STEPS)


@pytest.mark.parametrize("actions", [FORCE, CHOICE])
def test_rewards_that_depend_on_the_state_are_seen(actions):
    found = look(actions, lambda action, place: COST(action, place) + 0.01 * place)
    assert found.depend_on_state and not found.is_silent


def test_an_end_by_the_environment_itself_says_something_and_a_time_limit_does_not():
    assert look(FORCE, COST, 20).depend_on_state
    assert not look(FORCE, COST).depend_on_state  # cut after 50 steps


def test_few_steps_prove_nothing():
    assert not RewardLook(rewards.LEAST_STEPS - 1, depend_on_state=False).is_silent


def test_a_look_goes_on_until_something_can_be_concluded_but_not_for_ever(monkeypatch):
    monkeypatch.setattr(rewards, "LOOK_S", 0.0)
    monkeypatch.setattr(rewards, "LEAST_STEPS_S", 60.0)
    assert look(FORCE, COST).num_steps == rewards.LEAST_STEPS
    monkeypatch.setattr(rewards, "LEAST_STEPS_S", 0.0)
    assert look(FORCE, COST).num_steps == 1


def test_a_world_that_fails_in_a_step_is_not_refused():
    found = probe("tianji.envs.worlds:Flaky", {"at_step": 5}, looks_at_rewards=True)
    assert found.rewards is None


def test_nobody_looks_unasked():
    assert probe("tianji.envs.worlds:Counting", {}).rewards is None
