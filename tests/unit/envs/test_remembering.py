"""Environments that need a memory: what they show, and what they pay."""

import gymnasium as gym
import numpy as np
import pytest

from tests.unit.envs.test_env_state import check_goes_on_exactly
from tianji.envs.build import build_world
from tianji.envs.remembering import FORWARD, LEFT, RIGHT, PositionsOfCartPole, TMaze

POSITIONS = "tianji.envs.remembering:PositionsOfCartPole"


def walk(env, last, seed):
    """Go to the fork and turn; return the sign, what is seen later, and the rewards."""
    first, _ = env.reset(seed=seed)
    seen, rewards, ended = [], [], False
    for action in [FORWARD] * (env.length - 1) + [last]:
        assert not ended
        observation, reward, terminated, truncated, _ = env.step(action)
        seen.append(observation.tolist())
        rewards.append(reward)
        ended = terminated or truncated
    assert ended
    return first[0], seen, rewards


@pytest.mark.parametrize("length", [5, 30])
def test_the_sign_is_shown_once_and_says_which_way_to_turn(length):
    env, signs = TMaze(length), set()
    for seed in range(10):
        for last in (LEFT, RIGHT):
            sign, seen, rewards = walk(env, last, seed)
            assert seen[:-2] == [[0.0, 0.0]] * (length - 2) and seen[-2] == [0.0, 1.0]
            assert rewards == [0.0] * (length - 1) + [
                1.0 if (sign > 0) == (last == RIGHT) else -1.0
            ]
            signs.add(sign)
    assert signs == {-1.0, 1.0}


def test_going_nowhere_costs_and_ends_in_a_cut():
    env = TMaze(5)
    env.reset(seed=0)
    steps = [env.step(LEFT) for _ in range(20)]
    assert [reward for _, reward, *_ in steps] == [-0.2] * 20
    assert [truncated for *_, truncated, _ in steps] == [False] * 19 + [True]


def test_positions_are_those_of_cartpole():
    whole, positions = gym.make_vec("CartPole-v1", 3), PositionsOfCartPole(3)
    assert positions.single_observation_space.shape == (2,)
    expected, _ = whole.reset(seed=1)
    found, _ = positions.reset(seed=1)
    actions = np.random.default_rng(0).integers(2, size=(60, 3))
    for action in actions:
        np.testing.assert_array_equal(found, expected[:, [0, 2]])
        assert positions.observation_space.contains(found)
        expected, *rest = whole.step(action)
        found, *mine = positions.step(action)
        for one, other in zip(mine[:3], rest[:3], strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", [POSITIONS, "tianji.envs.remembering:TMaze"])
def test_runs_on_them_resume_exactly(name):
    check_goes_on_exactly(lambda: build_world(name, {}, 3))
