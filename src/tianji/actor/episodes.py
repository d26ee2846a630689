"""Exact episode statistics, worked out once per unroll instead of once per step."""

from __future__ import annotations

from typing import Any

import numpy as np

from tianji.types import Unroll


class EpisodeLedger:
    """Returns and lengths of the episodes that are still running, one per environment."""

    def __init__(self, num_envs: int) -> None:
        self._return = np.zeros(num_envs, np.float64)
        self._length = np.zeros(num_envs, np.int64)

    def close_unroll(self, unroll: Unroll, first_row: int, end: int) -> None:
        """Fill `episode_return` and `episode_length` for the rows from first_row on, of which those
        from `end` on were not made."""
        unroll["episode_return"][first_row:] = 0.0
        unroll["episode_length"][first_row:] = 0
        if end == first_row:
            return
        rows = slice(first_row, end)
        valid = unroll["valid"][rows]
        rewards = np.where(valid, unroll["reward"][rows], 0.0).astype(np.float64)
        ended = (unroll["terminated"][rows] | unroll["truncated"][rows]) & valid
        cut = ~valid  # where no episode ended before, the environment failed: it does not count
        cut[1:] &= ~ended[:-1]
        returns, lengths = rewards.cumsum(0), valid.cumsum(0)
        start_return, start_length = -self._return, -self._length
        # Ends are few: walk them in order of time, each environment from its last end on.
        for row, env in np.argwhere(ended | cut):
            if ended[row, env]:
                at = first_row + row, env
                unroll["episode_return"][at] = returns[row, env] - start_return[env]
                unroll["episode_length"][at] = lengths[row, env] - start_length[env]
            start_return[env], start_length[env] = returns[row, env], lengths[row, env]
        self._return = returns[-1] - start_return
        self._length = lengths[-1] - start_length

    def restart(self) -> None:
        """All environments begin new episodes."""
        self._return[:] = 0.0
        self._length[:] = 0

    def state(self) -> dict[str, Any]:
        return {"return": self._return.copy(), "length": self._length.copy()}

    def load_state(self, state: dict[str, Any]) -> None:
        self._return = np.array(state["return"], np.float64)
        self._length = np.array(state["length"], np.int64)
