"""Environments stepped one by one."""

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box

from tianji.envs.build import make_rows
from tianji.envs.single import SingleWorld, env_seeds
from tianji.envs.worlds import Continuous


class Clumsy(Continuous):
    """Changes the action it is given, and keeps it."""

    def act(self, action):
        action[:] = 99.0
        self.kept = action
        return 0.0


def test_an_environment_that_changes_its_action_changes_no_stored_one():
    world = SingleWorld([Clumsy(), Clumsy()])
    rows = make_rows(world, 1)
    world.reset(1, rows)
    stored = np.zeros((2, 1), np.float32)
    world.step(stored, rows, 0)
    assert not stored.any()
    assert not np.shares_memory(world.envs[0].kept, stored)


class Reusing(gym.Env):
    """Gives the same array for every observation."""

    observation_space = Box(0.0, 100.0, (1,), np.float32)
    action_space = Box(-1.0, 1.0, (1,), np.float64)

    def __init__(self):
        self.buffer = np.zeros(1, np.float32)

    def reset(self, *, seed=None, options=None):
        self.buffer[:] = 0.0
        return self.buffer, {}

    def step(self, action):
        assert action.dtype == np.float64
        self.buffer += 1.0
        return self.buffer, np.float64(0.5), np.bool_(False), np.bool_(self.buffer[0] == 3), {}


def test_a_reused_buffer_and_numpy_scalars_are_stored_right():
    world = SingleWorld([Reusing()])
    rows = make_rows(world, 5)
    world.reset(1, rows)
    for t in range(5):
        world.step(np.zeros((1, 1), np.float32), rows, t)
    assert rows["obs"].ravel().tolist() == [0, 1, 2, 3, 0, 1]
    assert rows["reward"].ravel().tolist() == [0.5, 0.5, 0.5, 0, 0.5]
    assert rows["truncated"].ravel().tolist() == [False, False, True, False, False]
    assert rows["valid"].ravel().tolist() == [True, True, True, False, True]


def test_seeds_of_neighbouring_runs_share_nothing():
    first, second = env_seeds(1, 100), env_seeds(2, 100)
    assert len({*first, *second}) == 200
    assert max(first) < 2**30
    assert env_seeds(1, 3) == first[:3]
