"""The actor's gradients: each is one episode of each of its environments, cut at the horizon, and
the mean over the environments. Only steps that count go through the network a second time.

T: time, N: environments, B: steps that count, K: choices or numbers of an action, P: parameters.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from tianji.algorithms.accelerators.policy_gradient import build_policy_gradient
from tianji.algorithms.gathered import GradientSum
from tianji.algorithms.policy_gradient.config import AFedPgConfig, PolicyGradientConfig
from tianji.algorithms.policy_gradient.loss import WeightedSteps
from tianji.algorithms.policy_gradient.model import PolicyModel
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.envs.spaces import Leaf, observation_leaves
from tianji.models.tensors import flatten, to_tensor
from tianji.ops.frames import stack_rows
from tianji.ops.returns import discounted_to_go, first_episode, without_peers
from tianji.types import AGE, OBS, Array, Unroll, leaf_name


class ReinforceEstimator(GradientSum):
    """See algorithms/interface.py."""

    def __init__(self, model: PolicyModel, spaces: Spaces, config: RunConfig) -> None:
        assert isinstance(config.algorithm, PolicyGradientConfig)
        super().__init__(flatten(model))
        self._config = config.algorithm
        self._model = model
        self._gradient = build_policy_gradient(model)
        self._leaves = observation_leaves(spaces.observation)
        self._has_ended_N = np.zeros(0, np.bool_)

    def look_ahead(self) -> None:
        self.flat.vector_P.copy_(self._model.ahead)

    def is_complete(self, unroll: Unroll, t: int) -> bool:
        if self._config.estimate == "steps":
            return False
        done_N = unroll["terminated"][t] | unroll["truncated"][t] | ~unroll["valid"][t]
        self._has_ended_N = self._has_ended_N | done_N if t else done_N.astype(np.bool_)
        return bool(self._has_ended_N.all())

    def differentiate(self, unroll: Unroll, num_rows: int) -> None:
        rows = slice(0, num_rows)
        done_TN = unroll["terminated"][rows] | unroll["truncated"][rows]
        counts_TN = first_episode(done_TN, unroll["valid"][rows].astype(np.bool_, copy=False))
        if not counts_TN.any():  # every environment failed in its first step
            self.flat.gradient_P.zero_()
            return
        weight_TN = discounted_to_go(unroll["reward"][rows], counts_TN, self._config.gamma)
        if self._config.baseline == "peers":
            weight_TN = without_peers(weight_TN, counts_TN)
        weight_TN = weight_TN / counts_TN.shape[1]
        action = unroll["action"][rows][counts_TN]
        steps = WeightedSteps(
            {leaf.key: _observations(unroll, leaf, counts_TN) for leaf in self._leaves},
            to_tensor(action.reshape(len(action), -1)),
            to_tensor(weight_TN[counts_TN].astype(np.float32)),
        )
        self._gradient.gradient(steps, None)


def _observations(unroll: Unroll, leaf: Leaf, counts_TN: Array) -> Tensor:
    """Return the observations of the steps that count, with stacks of frames rebuilt."""
    array, num_rows = unroll[leaf_name(OBS, leaf.key)], len(counts_TN)
    if not leaf.num_frames:
        return to_tensor(array[:num_rows][counts_TN])
    age_RN = unroll[leaf_name(AGE, leaf.key)][:num_rows]
    frames_FN = array[: num_rows + leaf.num_frames - 1]
    index_B = to_tensor(np.flatnonzero(counts_TN))
    return stack_rows(to_tensor(frames_FN), to_tensor(age_RN), index_B)


class FederatedEstimator(ReinforceEstimator):
    """AFedPG, our reconstruction: the actor sends the momentum that it has received with the
    gradient mixed in; before the first step, the gradient alone."""

    def contribution(self) -> Array:
        eta = float(self._model.eta)
        mixed_P = torch.lerp(self._model.direction, self.flat.gradient_P, eta)
        direction_P: Array = mixed_P.numpy()
        return direction_P


def build_estimator(model: nn.Module, spaces: Spaces, config: RunConfig) -> ReinforceEstimator:
    assert isinstance(model, PolicyModel)
    is_federated = isinstance(config.algorithm, AFedPgConfig)
    estimator = FederatedEstimator if is_federated else ReinforceEstimator
    return estimator(model, spaces, config)
