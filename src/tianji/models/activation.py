"""Non-linearities, each in the forms that the rooms need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tianji.types import Array

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "relu": F.relu,
    "elu": F.elu,
    "gelu": F.gelu,
}
"""For automatic differentiation."""


@dataclass(frozen=True)
class ByHand:
    """In-place forms, and the derivative as a function of the result alone."""

    on_tensor: Callable[[Tensor], object]
    on_array: Callable[[Array], object]
    gradient: Callable[[Tensor, Tensor], Tensor]
    """(gradient of the result, result) -> gradient of the argument."""


def _tanh_(x: Tensor) -> object:
    # NumPy's tanh takes 13 microseconds for 2 x 256 x 64 floats, torch's 84 (2.13, one thread).
    if x.device.type == "cpu":
        array = x.numpy()
        return np.tanh(array, out=array)
    return torch.tanh_(x)


def _elu_array(x: Array) -> None:
    np.copyto(x, np.expm1(x), where=x < 0.0)


BY_HAND: dict[str, ByHand] = {
    "tanh": ByHand(_tanh_, lambda x: np.tanh(x, out=x), torch.ops.aten.tanh_backward),
    "relu": ByHand(
        torch.relu_,
        lambda x: np.maximum(x, np.float32(0.0), out=x),
        lambda gradient, result: torch.ops.aten.threshold_backward(gradient, result, 0.0),
    ),
    "elu": ByHand(
        lambda x: F.elu(x, inplace=True),
        _elu_array,
        lambda gradient, result: torch.ops.aten.elu_backward(gradient, 1, 1, 1, True, result),
    ),
}
"""GELU is not here: its derivative needs the argument."""
