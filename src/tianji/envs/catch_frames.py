"""Catch (worlds.Pixels), seen as its newest frames: stacks like those of a game, without a ROM.

    tianji train catch-frames-ppo

Each frame is stored once, as for games; with whole_stacks, every stack is stored with all its
frames.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from tianji.envs.atari import NUM_FRAMES, FrameArguments
from tianji.envs.worlds import Pixels
from tianji.types import Array


class CatchFrames(VectorEnv[Any, Any, Any]):
    """Games of catch that step together; each gives its newest frames, oldest first."""

    def __init__(
        self,
        num_envs: int,
        num_frames: int = NUM_FRAMES,
        whole_stacks: bool = False,
        cells: int = 6,
        zoom: int = 6,
    ) -> None:
        make = partial(Pixels, cells, zoom)
        self._games = SyncVectorEnv([make] * num_envs, autoreset_mode=AutoresetMode.NEXT_STEP)
        self.frames = FrameArguments(num_frames, is_whole=whole_stacks)
        shape = self.frames.num_given, cells * zoom, cells * zoom
        self.num_envs, self.metadata = num_envs, self._games.metadata
        self.single_observation_space = Box(0, 255, shape, np.uint8)
        self.single_action_space = self._games.single_action_space
        self.action_space = self._games.action_space
        self._stack = np.zeros((num_envs, *shape), np.uint8)
        self._ended = np.zeros(num_envs, np.bool_)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Array, dict[str, Any]]:
        observation, infos = self._games.reset(seed=seed, options=options)
        self._ended[:] = True
        stack = self._stacked(observation)
        self._ended[:] = False
        return stack, infos

    def step(self, actions: Array) -> tuple[Array, Any, Any, Any, dict[str, Any]]:
        observation, reward, terminated, truncated, infos = self._games.step(actions)
        stack = self._stacked(observation)
        np.logical_or(terminated, truncated, self._ended)
        return stack, reward, terminated, truncated, infos

    def _stacked(self, observation: Array) -> Array:
        """Return the stacks with these frames, which begin anew where a game has ended before."""
        self._stack[:, :-1] = self._stack[:, 1:]
        self._stack[self._ended] = 0
        self._stack[:, -1] = observation[..., 0]
        return self._stack.copy()

    def close_extras(self, **kwargs: Any) -> None:
        self._games.close()
