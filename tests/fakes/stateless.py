"""A world that does not offer its state."""

import gymnasium as gym
import numpy as np


class Stateless(gym.Env):
    """Walks at random; the reward is where it is."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = self.np_random.normal(size=2).astype(np.float32)
        self.steps = 0
        return self.at, {}

    def step(self, action):
        self.steps += 1
        self.at = self.at + self.np_random.normal(size=2).astype(np.float32) + action - 0.5
        return self.at.astype(np.float32), float(self.at[0]), False, self.steps >= 20, {}
