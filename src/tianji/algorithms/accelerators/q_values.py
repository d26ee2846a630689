"""Q values of rows of observations in an actor. The best action needs less of a dueling network:
its advantages rank the actions alike.

N: environments, A: actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import gymnasium as gym
import numpy as np

from tianji.algorithms.accelerators.gpu import GpuRows
from tianji.algorithms.accelerators.inference import (
    HostRows,
    NumpyInference,
    RowInference,
    TorchInference,
    build_rows,
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


def build_q_rows(model: QNetwork, space: gym.Space[Any]) -> RowInference:
    """Return the fastest evaluation of Q values on the device of the network."""
    if not model.is_dueling:
        return build_rows(model.net, SCORES, space)
    device = device_of(model)
    if device.type != "cpu":
        return GpuRows(model, space, device)
    if has_closed_form(model.net):
        return HostRows(NumpyDueling(cast(StackedNet, model.net)), space)
    return HostRows(TorchInference(model), space)
