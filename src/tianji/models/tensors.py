"""Where arrays become tensors on the learner's device, and how parts share a state dictionary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import torch
from torch import Tensor

from tianji.types import Array

Tensors: TypeAlias = dict[str, Tensor]
"""Tensors [B, ...] by name: observation leaves, or the features made of them."""

CPU = torch.device("cpu")


def to_tensor(array: Array, device: torch.device = CPU) -> Tensor:
    """Return an array as a tensor on a device.

    On a CPU it shares the array's memory, unless that may not be written to: torch has no read-only
    tensors.
    """
    tensor = torch.from_numpy(array if array.flags.writeable else array.copy())
    return tensor if device.type == "cpu" else tensor.to(device, non_blocking=True)


def to_tensors(arrays: Mapping[str, Array], device: torch.device = CPU) -> Tensors:
    """Return arrays by name as tensors on a device."""
    return {name: to_tensor(array, device) for name, array in arrays.items()}


def add_prefix(prefix: str, state: Mapping[str, Tensor]) -> Tensors:
    """Name the state of one part so that several fit in one dictionary: `optimizer/m`."""
    return {f"{prefix}/{name}": tensor for name, tensor in state.items()}


def with_prefix(prefix: str, state: Mapping[str, Tensor]) -> Tensors:
    """Return the part of such a dictionary that add_prefix() has put there."""
    start = f"{prefix}/"
    return {
        name.removeprefix(start): tensor for name, tensor in state.items() if name.startswith(start)
    }
