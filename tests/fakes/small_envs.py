"""Environments whose episodes are known in advance."""

import os
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Countdown(gym.Env):
    """Every second one has episodes of 2 steps, the others of 9; a step gives 1."""

    observation_space = spaces.Box(0, 10, (2,), np.float32)
    action_space = spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}
    made = 0

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.length = 2 if Countdown.made % 2 == 0 else 9
        Countdown.made += 1

    def reset(self, *, seed=None, options=None):
        self.left = self.length
        return np.full(2, self.left, np.float32), {}

    def step(self, action):
        self.left -= 1
        return np.full(2, self.left, np.float32), 1.0, self.left == 0, False, {}

    def render(self):
        return np.full((31, 40, 3), 20 * self.left, np.uint8)


class Arm(gym.Env):
    """A dictionary of observations and continuous actions."""

    observation_space = spaces.Dict(
        {"camera": spaces.Box(0, 255, (4, 4, 3), np.uint8), "angle": spaces.Box(-1, 1, (3,))}
    )
    action_space = spaces.Box(-1, 1, (2,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        assert np.shape(action) == (2,)
        self.steps += 1
        return self.observation_space.sample(), 0.5, False, self.steps == 5, {}


class FromOne(gym.Env):
    """Actions are 1 and 2."""

    observation_space = spaces.Box(-1, 1, (2,), np.float64)
    action_space = spaces.Discrete(2, start=1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.uniform(-1, 1, 2), {}

    def step(self, action):
        assert action in (1, 2)
        return self.np_random.uniform(-1, 1, 2), 0.0, True, False, {}


class Endless(gym.Env):
    """No episode ever ends; a step gives 1."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 1.0, False, False, {}

    def render(self):
        return np.zeros((32, 32, 3), np.uint8)


class ShortOrLong(gym.Env):
    """Action 0 ends a new episode at once with a reward of 1; other actions play on for nothing."""

    observation_space = spaces.Box(0.0, 0.0, (1,), np.float32)
    action_space = spaces.Discrete(4)

    def __init__(self, length=10):
        self.length, self.steps = length, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        is_short = self.steps == 1 and int(action) == 0
        over = is_short or self.steps >= self.length
        return np.zeros(1, np.float32), float(is_short), over, False, {}


class Swing(gym.Wrapper):
    """A pendulum, whose episodes are never ended by it."""

    def __init__(self, go, pid):
        super().__init__(gym.make("Pendulum-v1"))
        self.go, self.pid = Path(go), pid


class HeldSwing(Swing):
    """The same, which stands still until the file `go` is there, except in the process `pid`."""

    def step(self, action):
        while os.getpid() != self.pid and not self.go.exists():
            time.sleep(0.01)
        return super().step(action)
