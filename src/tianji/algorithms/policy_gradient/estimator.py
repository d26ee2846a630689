"""The actor's gradients: one episode of each environment, cut at the horizon, gives one (see
ops/reinforce.py); an actor's environments are averaged. Nothing but steps that count goes through
the network a second time.

T: time, N: environments, B: steps that count, K: choices or numbers of an action, P: parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from tianji.algorithms.policy_gradient.model import PolicyModel
from tianji.algorithms.policy_gradient.settings import PolicyGradientConfig
from tianji.envs.interface import Spaces
from tianji.envs.spaces import observation_leaves
from tianji.models.flat import flatten
from tianji.models.networks.gradient import build_gradient_net
from tianji.models.tensors import to_tensor
from tianji.ops.reinforce import discounted_to_go, first_episode, without_peers
from tianji.types import OBS, Array, Unroll, leaf_name

if TYPE_CHECKING:
    from tianji.config.run import RunConfig


class ReinforceEstimator:
    """See algorithms/interface.py."""

    def __init__(self, model: PolicyModel, spaces: Spaces, config: RunConfig) -> None:
        assert isinstance(config.algorithm, PolicyGradientConfig)
        self._config = config.algorithm
        self._model = model
        self._flat = flatten(model)
        self._network = build_gradient_net(model.net, self._flat)
        leaves = observation_leaves(spaces.observation)
        self._names = {leaf.key: leaf_name(OBS, leaf.key) for leaf in leaves}
        self._has_ended_N = np.zeros(0, np.bool_)
        self.sum_P: Array = np.zeros(len(self._flat.vector_P), np.float32)
        self.count = 0

    def look_ahead(self) -> None:
        self._flat.vector_P.copy_(self._model.ahead)

    def begin(self) -> None:
        self.sum_P[:] = 0.0
        self.count = 0

    def load(self, sum_P: Array, count: int) -> None:
        self.sum_P[:] = sum_P
        self.count = count

    def is_complete(self, unroll: Unroll, t: int) -> bool:
        if self._config.estimate == "steps":
            return False
        done_N = unroll["terminated"][t] | unroll["truncated"][t] | ~unroll["valid"][t]
        self._has_ended_N = self._has_ended_N | done_N if t else done_N.astype(np.bool_)
        return bool(self._has_ended_N.all())

    def add(self, unroll: Unroll, num_rows: int) -> None:
        self._differentiate(unroll, num_rows)
        self.sum_P += self._contribution()
        self.count += 1

    def _contribution(self) -> Array:
        """What is added for the gradient that was just made."""
        gradient_P: Array = self._flat.gradient_P.numpy()
        return gradient_P

    def _differentiate(self, unroll: Unroll, num_rows: int) -> None:
        """Fill the flat gradient."""
        rows = slice(0, num_rows)
        done_TN = unroll["terminated"][rows] | unroll["truncated"][rows]
        counts_TN = first_episode(done_TN, unroll["valid"][rows].astype(np.bool_, copy=False))
        if not counts_TN.any():  # every environment failed in its first step
            self._flat.gradient_P.zero_()
            return
        weight_TN = discounted_to_go(unroll["reward"][rows], counts_TN, self._config.gamma)
        if self._config.baseline == "peers":
            weight_TN = without_peers(weight_TN, counts_TN)
        weight_TN = weight_TN / counts_TN.shape[1]
        weight_B = torch.from_numpy(weight_TN[counts_TN].astype(np.float32))
        obs = {key: to_tensor(unroll[name][rows][counts_TN]) for key, name in self._names.items()}
        inputs = self._network.prepare(obs)
        action_AB = self._model.head.prepare(_columns(unroll["action"][rows][counts_TN]))
        with self._network.guard():
            (outputs_AB,) = self._network.forward(inputs, len(weight_B))
            self._model.head.log_prob(outputs_AB, action_AB)
            self._network.backward(self._model.head.backward(weight_B, None))


class FederatedEstimator(ReinforceEstimator):
    """AFedPG, our reconstruction: what is sent is the momentum that the actor has received with
    the gradient mixed in; before the first step, the gradient alone."""

    def _contribution(self) -> Array:
        eta = float(self._model.eta)
        mixed_P = torch.lerp(self._model.direction, self._flat.gradient_P, eta)
        direction_P: Array = mixed_P.numpy()
        return direction_P


def _columns(action: Array) -> Tensor:
    """[B, K], whatever the shape of one action."""
    return to_tensor(action.reshape(len(action), -1))


def build_estimator(model: nn.Module, spaces: Spaces, config: RunConfig) -> ReinforceEstimator:
    assert isinstance(model, PolicyModel)
    return ReinforceEstimator(model, spaces, config)


def build_federated(model: nn.Module, spaces: Spaces, config: RunConfig) -> FederatedEstimator:
    assert isinstance(model, PolicyModel)
    return FederatedEstimator(model, spaces, config)
