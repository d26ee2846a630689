"""The first priority of each transition, computed by the actor that makes it (Horgan et al. 2018).

The Q values are those that chose the actions; there is no other inference. An unroll looks one row
further ahead than its returns, so that the value of the row that the last item ends with is known.

R: rows of an unroll, N: environments, A: actions.
"""

from __future__ import annotations

import numpy as np

from tianji.algorithms.dqn.config import DQNConfig
from tianji.algorithms.dqn.spec import Q_BEST, Q_TAKEN
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.models.sizes import reward_clip
from tianji.ops.returns import Floats
from tianji.ops.td_errors import n_step_td_error
from tianji.types import FINAL_OBS, LIFE_LOST, PRIORITY, Array, Unroll


class InitialPriorities:
    """Notes the Q values of every row, and turns them into priorities when the unroll is done."""

    def __init__(self, spaces: Spaces, config: RunConfig) -> None:
        assert isinstance(config.algorithm, DQNConfig)
        self._n_step = config.algorithm.n_step
        self._gamma = config.algorithm.gamma
        self._clip = reward_clip(spaces, config)
        self._env_N: Array = np.empty(0, np.int64)

    def note(self, unroll: Unroll, t: int, q_NA: Floats, action_N: Array) -> None:
        if len(self._env_N) != len(q_NA):
            self._env_N = np.arange(len(q_NA))
        unroll[Q_TAKEN][t] = q_NA[self._env_N, action_N]
        q_NA.max(1, out=unroll[Q_BEST][t])

    def finish(self, unroll: Unroll) -> None:
        """Write |delta| of every item; no item begins in the rows behind."""
        reward_RN, terminated_RN = unroll["reward"], unroll["terminated"]
        if self._clip is not None:
            reward_RN = np.clip(reward_RN, -self._clip, self._clip)
        if LIFE_LOST in unroll:
            terminated_RN = terminated_RN | unroll[LIFE_LOST]
        error_TN = n_step_td_error(
            unroll[Q_TAKEN],
            unroll[Q_BEST],
            reward_RN,
            terminated_RN,
            unroll["truncated"],
            unroll["valid"],
            self._n_step,
            self._gamma,
            keeps_final=any(name.startswith(FINAL_OBS) for name in unroll),
        )
        np.abs(error_TN, out=unroll[PRIORITY][: len(error_TN)])
