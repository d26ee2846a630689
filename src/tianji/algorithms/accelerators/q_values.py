"""Q values of rows of observations in an actor. The best action needs less of a dueling network:
its advantages rank the actions alike.

N: environments, A: actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

import numpy as np
from torch import Tensor

from tianji.algorithms.accelerators.inference import (
    Inference,
    MaskedInference,
    Network,
    NumpyInference,
    RowNetwork,
    TorchInference,
)
from tianji.algorithms.accelerators.network import has_closed_form
from tianji.algorithms.dqn.model import SCORES, QNetwork
from tianji.models.networks.stacked import StackedNet
from tianji.models.tensors import device_of
from tianji.ops.returns import Floats
from tianji.types import Array

VALUE = 1
"""The network that computes the value, of the two of a dueling one."""


class NumpyDueling:
    """Evaluates both networks of a small dueling one: V + A - mean_a A."""

    def __init__(self, net: StackedNet) -> None:
        self._advantage = NumpyInference(net, SCORES)
        self._value = NumpyInference(net, VALUE)
        self._value_N1 = np.empty((0, 1), np.float32)

    def refresh(self) -> None:
        self._advantage.refresh()
        self._value.refresh()

    def __call__(self, arrays: Mapping[str, Array], out_NA: Floats) -> None:
        if len(self._value_N1) != len(out_NA):
            self._value_N1 = np.empty((len(out_NA), 1), np.float32)
        self._advantage(arrays, out_NA)
        self._value(arrays, self._value_N1)
        out_NA += self._value_N1 - out_NA.mean(1, keepdims=True)


class DuelingNetwork(NamedTuple):
    """Both networks of a dueling one, combined; see RowNetwork."""

    net: QNetwork

    @property
    def num_outputs(self) -> int:
        return self.net.num_actions

    def forward(self, obs: Mapping[str, Tensor]) -> Tensor:
        q_NA: Tensor = self.net(obs)
        return q_NA

    def inference(self) -> Inference:
        mask = self.net.mask
        if has_closed_form(self.net.net):
            inference = NumpyDueling(cast(StackedNet, self.net.net))
            return inference if mask is None else MaskedInference(inference, mask)
        return TorchInference(self.net, device_of(self.net))


def q_network(model: QNetwork) -> RowNetwork:
    """Return the network whose outputs are Q values."""
    if model.is_dueling:
        return DuelingNetwork(model)
    return Network(model.net, SCORES, model.num_actions, model.mask)
