"""Where arrays become tensors on the learner's device, and a module's tensors become bytes.

All parameters of a module lie in one flat vector, and all gradients in another. Publishing is then
one copy, the gradient's norm one kernel, and an optimiser step a few.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tianji.devices.twins import TWINS
from tianji.devices.waits import WAITS, Waits
from tianji.errors import UsageError
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
    if device.type == "cpu":
        return tensor
    WAITS.uploaded_bytes += array.nbytes
    return tensor.to(device, non_blocking=True)


def device_of(module: nn.Module) -> torch.device:
    """Return where the parameters of a module are."""
    return next((parameter.device for parameter in module.parameters()), CPU)


def to_tensors(arrays: Mapping[str, Array], device: torch.device = CPU) -> Tensors:
    """Return arrays by name as tensors on a device."""
    return {name: to_tensor(array, device) for name, array in arrays.items()}


def kept(tensor: Tensor) -> Tensor:
    """Return a copy of what a CUDA graph returned, which its next launch overwrites."""
    return tensor.clone() if tensor.is_cuda else tensor


def take_rows(x: Tensor, index_B: Tensor) -> Tensor:
    """Return these rows as a copy; images with the channels last in memory keep that order."""
    if x.ndim == 4 and not x.is_contiguous():
        return x.permute(0, 2, 3, 1).index_select(0, index_B).permute(0, 3, 1, 2)
    return x.index_select(0, index_B)


def add_prefix(prefix: str, state: Mapping[str, Tensor]) -> Tensors:
    """Name the state of one part so that several fit in one dictionary: `optimizer/m`."""
    return {f"{prefix}/{name}": tensor for name, tensor in state.items()}


def with_prefix(prefix: str, state: Mapping[str, Tensor]) -> Tensors:
    """Return the part of such a dictionary that add_prefix() has put there."""
    start = f"{prefix}/"
    return {
        name.removeprefix(start): tensor for name, tensor in state.items() if name.startswith(start)
    }


@dataclass(frozen=True)
class FlatParameters:
    """The two vectors; the module's parameters and their `.grad` are views into them."""

    vector_P: Tensor
    gradient_P: Tensor


def flatten(module: nn.Module) -> FlatParameters:
    """Lay all parameters out in one float32 vector, in the module's own order.

    A module that is already laid out so keeps its memory: every caller gets the same vectors. They
    may be parts of the vectors of a larger module.
    """
    parameters = list(module.parameters())
    for name, parameter in module.named_parameters():
        if parameter.dtype != torch.float32:
            raise UsageError(
                f"Parameter '{name}' of the network is {parameter.dtype}; TianJi trains networks "
                "whose parameters are all torch.float32. Build it with the default dtype."
            )
    size = sum(parameter.numel() for parameter in parameters)
    vector_P = _shared_vector([parameter.detach() for parameter in parameters], size)
    if vector_P is None:
        device = parameters[0].device if parameters else None
        vector_P = torch.empty(size, device=device)
        for parameter, view in zip(parameters, _views(vector_P, parameters), strict=True):
            view.copy_(parameter.detach())
            parameter.data = view
    gradients = [parameter.grad for parameter in parameters]
    gradient_P = None
    if all(gradient is not None for gradient in gradients):
        gradient_P = _shared_vector(cast(list[Tensor], gradients), size)
    if gradient_P is None:
        gradient_P = torch.zeros_like(vector_P)
        for parameter, view in zip(parameters, _views(gradient_P, parameters), strict=True):
            parameter.grad = view
    return FlatParameters(vector_P, gradient_P)


def _views(vector_P: Tensor, parameters: list[nn.Parameter]) -> list[Tensor]:
    parts = torch.split(vector_P, [parameter.numel() for parameter in parameters])
    return [part.view(parameter.shape) for part, parameter in zip(parts, parameters, strict=True)]


def _shared_vector(tensors: list[Tensor], size: int) -> Tensor | None:
    """Return the vector behind tensors that lie one after the other in one storage, or None."""
    if not tensors:
        return None
    storage, offset = tensors[0].untyped_storage(), tensors[0].storage_offset()
    first = offset
    for tensor in tensors:
        same = tensor.untyped_storage().data_ptr() == storage.data_ptr()
        if not same or tensor.storage_offset() != offset or not tensor.is_contiguous():
            return None
        offset += tensor.numel()
    return tensors[0].new_empty(0).set_(storage, first, (size,), (1,))


class Snapshot:
    """The published policy of a module as bytes: flat parameters, then every buffer.

    >>> Snapshot(learner_model).write_to(buffer)
    >>> Snapshot(actor_model).read_from(buffer)    # the same class of module: an exact copy
    """

    def __init__(self, module: nn.Module) -> None:
        vector_P = flatten(module).vector_P
        for buffer in module.buffers():
            if not buffer.is_contiguous():
                buffer.data = buffer.data.contiguous()
        # Empty tensors cannot be viewed as bytes.
        tensors = [vector_P, *(buffer.detach() for buffer in module.buffers())]
        self._parts = [t.reshape(-1).view(torch.uint8) for t in tensors if t.numel()]
        self._sizes = [part.numel() for part in self._parts]
        self.nbytes = sum(self._sizes)
        self._staging: NDArray[np.uint8] | None = None
        """Between a GPU and the buffers, memory that the GPU reads and writes by itself."""
        if vector_P.is_cuda:
            self._staging = torch.empty(self.nbytes, dtype=torch.uint8, pin_memory=True).numpy()
        self._reading = Waits()
        """Those of an actor; in one process it shares the learner's thread."""

    def write_to(self, buffer: NDArray[np.uint8]) -> None:
        """Copy the module's state out; the buffer has nbytes bytes."""
        host = buffer if self._staging is None else self._staging
        if self._staging is not None:
            WAITS.mark()  # the GPU may still be busy with the updates
        for part, source in zip(self._split(host), self._parts, strict=True):
            part.copy_(source, non_blocking=True)
        if self._staging is not None:
            WAITS.wait()
            buffer[:] = self._staging

    def read_from(self, buffer: NDArray[np.uint8]) -> None:
        """Copy the state in, under the module's own tensors: every view of them sees it."""
        if self._staging is not None:
            self._reading.wait()  # the copy before this one may still be under way
            self._staging[:] = buffer
            buffer = self._staging
        for part, target in zip(self._split(buffer), self._parts, strict=True):
            target.copy_(part, non_blocking=True)

    def read_beginning(self, buffer: NDArray[np.uint8]) -> None:
        """Copy the state in from a buffer in which more follows."""
        self.read_from(buffer[: self.nbytes])

    def _split(self, buffer: NDArray[np.uint8]) -> tuple[Tensor, ...]:
        if buffer.nbytes != self.nbytes:
            raise ValueError(f"snapshot of {self.nbytes} bytes, buffer of {buffer.nbytes}")
        if not buffer.flags.writeable:  # torch has no read-only tensors and warns
            buffer = buffer.copy()
        return torch.split(torch.from_numpy(buffer), self._sizes)
