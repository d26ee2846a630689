"""Where arrays become tensors on the learner's device, and how parts share a state dictionary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from tianji.devices.twins import TWINS
from tianji.types import Array, Observed, Parts

Tensors: TypeAlias = dict[str, Tensor]
"""Tensors [B, ...] by name: observation leaves, or the features made of them."""

CPU = torch.device("cpu")


def to_tensor(array: Observed | Tensor, device: torch.device = CPU) -> Tensor:
    """Return an array as a tensor on a device.

    On a CPU it shares the array's memory, unless that may not be written to: torch has no read-only
    tensors. On a GPU it is found there if it is there already.
    """
    if isinstance(array, Tensor):
        return array
    if isinstance(array, Parts):
        return torch.cat([to_tensor(part, device) for part in array.arrays], array.axis)
    if device.type != "cpu" and (twin := TWINS.find(array)) is not None:
        return twin
    tensor = torch.from_numpy(array if array.flags.writeable else array.copy())
    return tensor if device.type == "cpu" else tensor.to(device, non_blocking=True)


def device_of(module: nn.Module) -> torch.device:
    """Return where the parameters of a module are."""
    return next((parameter.device for parameter in module.parameters()), CPU)


def joined(array: Observed) -> Array:
    """Return the parts as one array."""
    return np.concatenate(array.arrays, array.axis) if isinstance(array, Parts) else array


def to_tensors(arrays: Mapping[str, Array], device: torch.device = CPU) -> Tensors:
    """Return arrays by name as tensors on a device."""
    return {name: to_tensor(array, device) for name, array in arrays.items()}


def kept(tensor: Tensor) -> Tensor:
    """Return a copy of what a CUDA graph returned, which its next launch overwrites."""
    return tensor.clone() if tensor.is_cuda else tensor


def add_prefix(prefix: str, state: Mapping[str, Tensor]) -> Tensors:
    """Name the state of one part so that several fit in one dictionary: `optimizer/m`."""
    return {f"{prefix}/{name}": tensor for name, tensor in state.items()}


def with_prefix(prefix: str, state: Mapping[str, Tensor]) -> Tensors:
    """Return the part of such a dictionary that add_prefix() has put there."""
    start = f"{prefix}/"
    return {
        name.removeprefix(start): tensor for name, tensor in state.items() if name.startswith(start)
    }
