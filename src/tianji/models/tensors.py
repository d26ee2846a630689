"""Small bridges between NumPy arrays and tensors."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from tianji.types import Array


def to_tensor(array: Array) -> Tensor:
    """The same memory as a tensor; a copy where the array may not be written to."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def add_prefix(prefix: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Names for one dictionary that holds the state of several parts: `optimizer/m`."""
    return {f"{prefix}/{name}": tensor for name, tensor in state.items()}


def with_prefix(prefix: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The part of such a dictionary that add_prefix() put there."""
    start = f"{prefix}/"
    return {
        name.removeprefix(start): tensor for name, tensor in state.items() if name.startswith(start)
    }
