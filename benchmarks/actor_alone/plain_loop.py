"""The loop that a person writes: step, forward, sample, log-probability, keep."""

from __future__ import annotations

from collections.abc import Sequence

import gymnasium as gym
import numpy as np
import torch
from torch.distributions import Categorical

from benchmarks.limits import CARTPOLE, mlp


class PlainLoop:
    """Vector CartPole and ordinary torch, into arrays of one unroll."""

    def __init__(self, num_envs: int, unroll_length: int, hidden: Sequence[int]) -> None:
        self._envs = gym.make_vec(CARTPOLE, num_envs, vectorization_mode="vector_entry_point")
        self._next, _ = self._envs.reset(seed=1)
        self._net = mlp(4, hidden, 2)
        shape = (unroll_length, num_envs)
        self._obs = np.zeros((*shape, 4), np.float32)
        self._actions = np.zeros(shape, np.int64)
        self._log_probs = np.zeros(shape, np.float32)
        self._rewards = np.zeros(shape, np.float32)
        self._ended = np.zeros(shape, np.bool_)

    def run(self, num_unrolls: int) -> int:
        """Returns the environment steps."""
        for _ in range(num_unrolls):
            self._unroll()
        return num_unrolls * self._actions.size

    @torch.no_grad()
    def _unroll(self) -> None:
        for t in range(len(self._actions)):
            self._obs[t] = self._next
            policy = Categorical(logits=self._net(torch.from_numpy(self._next)))
            action = policy.sample()
            self._actions[t] = action.numpy()
            self._log_probs[t] = policy.log_prob(action).numpy()
            self._next, reward, terminated, truncated, _ = self._envs.step(self._actions[t])
            self._rewards[t] = reward
            self._ended[t] = terminated | truncated
