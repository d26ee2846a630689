"""Environments with images, and Gymnasium's wrappers around them, as people bring them."""

import gymnasium as gym
import numpy as np
import torch
from gymnasium import wrappers
from gymnasium.spaces import Box, Dict, Discrete, Text
from torch import nn


class Noise(gym.Env):
    """Random pixels; an episode has 5 steps."""

    action_space = Discrete(3)

    def __init__(self, shape=(40, 40, 3), dtype="uint8", high=255):
        self.observation_space = Box(0, high, tuple(shape), np.dtype(dtype))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observe(), {}

    def step(self, action):
        self.steps += 1
        return self.observe(), float(action), False, self.steps == 5, {}

    def observe(self):
        space = self.observation_space
        pixels = self.np_random.random(space.shape) * (float(space.high.max()) + 0.99)
        return np.minimum(pixels, space.high).astype(space.dtype)


class Driving(Noise):
    """Images and continuous actions, as CarRacing has them."""

    action_space = Box(np.array([-1.0, 0.0, 0.0], np.float32), np.ones(3, np.float32))

    def step(self, action):
        return super().step(float(action.sum()))


class Grid(Noise):
    """A small image, a direction and a mission in words, as MiniGrid has them."""

    def __init__(self):
        super().__init__((7, 7, 3), high=10)
        self.image = self.observation_space
        self.observation_space = Dict(
            {"image": self.image, "direction": Discrete(4), "mission": Text(20)}
        )

    def observe(self):
        pixels = self.np_random.integers(11, size=(7, 7, 3)).astype(np.uint8)
        return {"image": pixels, "direction": int(self.np_random.integers(4)), "mission": "go"}


def without_mission():
    return wrappers.FilterObservation(Grid(), ["image", "direction"])


def stacked(num_frames=4, **kwargs):
    return wrappers.FrameStackObservation(Noise(**kwargs), num_frames)


def grey(keep_dim=False, num_frames=4):
    """Needs OpenCV, for the size."""
    small = wrappers.ResizeObservation(Noise((60, 80, 3)), (42, 36))
    image = wrappers.GrayscaleObservation(small, keep_dim=keep_dim)
    return wrappers.FrameStackObservation(image, num_frames) if num_frames else image


def preprocessed_pong(**kwargs):
    """Needs OpenCV and ALE: one environment, with Gymnasium's wrappers."""
    import ale_py

    gym.register_envs(ale_py)
    pong = gym.make("ALE/Pong-v5", frameskip=1)
    return wrappers.FrameStackObservation(wrappers.AtariPreprocessing(pong, **kwargs), 4)


class Curtain(gym.Env):
    """A ball falls at a slant and bounces off the walls; a paddle in the last row must meet it.

    The last rows are behind a curtain, so one image does not tell where the ball goes: a policy
    needs several. The last step gives 1 for a catch and -1 for a miss.
    """

    action_space = Discrete(3)

    def __init__(self, cells=8, zoom=5, hidden=2):
        self.cells, self.zoom, self.hidden = cells, zoom, hidden
        self.observation_space = Box(0, 255, (cells * zoom, cells * zoom), np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.row, self.ball = 0, int(self.np_random.integers(self.cells))
        self.slant = int(self.np_random.choice([-1, 1]))
        self.paddle = self.cells // 2
        return self.observe(), {}

    def step(self, action):
        self.paddle = min(max(self.paddle + int(action) - 1, 0), self.cells - 1)
        if not 0 <= self.ball + self.slant < self.cells:
            self.slant = -self.slant
        self.ball += self.slant
        self.row += 1
        is_over = self.row == self.cells - 1
        reward = (1.0 if self.ball == self.paddle else -1.0) if is_over else 0.0
        return self.observe(), reward, is_over, False, {}

    def observe(self):
        board = np.zeros((self.cells, self.cells), np.uint8)
        if self.row < self.cells - 1 - self.hidden:
            board[self.row, self.ball] = 255
        board[-1, self.paddle] = 255
        return board.repeat(self.zoom, axis=0).repeat(self.zoom, axis=1)


def stacked_curtain(num_frames=4, **kwargs):
    return wrappers.FrameStackObservation(Curtain(**kwargs), num_frames)


class Convolutions(nn.Module):
    """A network for images as people bring it; it scales the bytes itself."""

    def __init__(self, shape, num_outputs, has_value):
        super().__init__()
        self.is_channels_last = shape[-1] < shape[0]
        channels = shape[-1] if self.is_channels_last else shape[0]
        self.body = nn.Sequential(
            nn.Conv2d(channels, 16, 6, 3), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(),
            nn.AdaptiveAvgPool2d(5), nn.Flatten(), nn.Linear(800, 64), nn.ReLU(),
        )  # fmt: skip
        self.outputs = nn.Linear(64, num_outputs)
        self.value = nn.Linear(64, 1) if has_value else None

    def forward(self, obs):
        assert obs.dtype == torch.uint8
        image = obs.permute(0, 3, 1, 2) if self.is_channels_last else obs
        x = self.body(image.float() / 255)
        return self.outputs(x) if self.value is None else (self.outputs(x), self.value(x))


def actor_critic(observation_space, action_space):
    return Convolutions(observation_space.shape, int(action_space.n), has_value=True)


def q_network(observation_space, action_space):
    return Convolutions(observation_space.shape, int(action_space.n), has_value=False)
