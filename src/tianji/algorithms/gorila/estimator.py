"""The gradients of Gorila's actors: that of dqn_loss() (algorithms/dqn/loss.py) on transitions that
the actor has sampled from its own memory, with a target network of its own.

B: transitions of a gradient.
"""

from __future__ import annotations

import numpy as np
import torch

from tianji.algorithms.accelerators.dqn import build_dqn
from tianji.algorithms.dqn.loss import Transitions
from tianji.algorithms.dqn.model import QNetwork
from tianji.algorithms.dqn.target import TargetNetwork
from tianji.algorithms.gathered import GradientSum
from tianji.algorithms.gorila.config import GorilaConfig
from tianji.algorithms.sampled import read_sampled
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.envs.spaces import observation_leaves
from tianji.models.tensors import flatten
from tianji.types import Unroll


class QEstimator(GradientSum):
    """See algorithms/interface.py."""

    def __init__(self, model: QNetwork, spaces: Spaces, config: RunConfig) -> None:
        assert isinstance(config.algorithm, GorilaConfig)
        super().__init__(flatten(model))
        self._config = config.algorithm
        self._keys = [leaf.key for leaf in observation_leaves(spaces.observation)]
        self._period = config.algorithm.target_period_updates
        self._target = TargetNetwork(model, self._period)
        self._target_period = -1
        """Which period of versions the target network is of; -1 before the first version."""
        self._gradient = build_dqn(model, self._target.model)

    def begin(self, version: int) -> None:
        """Copy the network to the target with the first version of a period that is read."""
        super().begin(version)
        if version // self._period != self._target_period:
            self._target_period = version // self._period
            self._target.copy()

    def differentiate(self, unroll: Unroll, num_rows: int) -> None:
        one = self._gradient.prepare(self._read(unroll), self._config).update(0)
        self._gradient.gradient(one, self._config)

    def _read(self, sample: Unroll) -> Transitions:
        """Return a sample as the transitions of one update, [1, B, ...]."""
        arrays = {name: np.asarray(array)[None] for name, array in sample.items()}
        sampled = read_sampled(arrays, self._keys)
        return Transitions(*sampled, torch.ones_like(sampled.reward))
