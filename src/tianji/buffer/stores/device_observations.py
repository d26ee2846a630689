"""Observations of a replay store on a GPU: uploaded once, gathered there.

L: lanes, R: rows of a ring, N: environments of a lane, K: frames of a stack, B: chosen items.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from tianji.buffer.stores.observations import flat_index, stack_index
from tianji.buffer.stores.rings import MakeObservations
from tianji.devices.waits import WAITS, Download, make_event
from tianji.types import Array, Field

MOST_STAGED = 8
"""Blocks of rows that may be on their way to the GPU at once, in pinned memory. The learner waits
once for each version, after which all are free; a writer waits only where a version takes in more
of them."""


class DeviceObservations:
    """One leaf of the observations as one tensor. Slots are free again once write() returns: the
    rows are copied to pinned memory, from where they are uploaded while the caller goes on."""

    def __init__(
        self, device: torch.device, field: Field, shape: tuple[int, ...], num_frames: int
    ) -> None:
        """num_frames: frames of a stack; 0 where observations are stored as they are."""
        dtype = torch.from_numpy(np.empty(0, field.dtype)).dtype
        self._lanes = torch.zeros(shape, dtype=dtype, device=device)
        self._flat = self._lanes.flatten(0, 2)
        self._shape = shape[1], shape[2]
        self._num_frames = num_frames
        self._device = device
        self._staged = Turns(partial(_Staged, device), MOST_STAGED)

    def write(self, lane: int, row: int, rows_TN: Array) -> None:
        num_rows = self._shape[0]
        begin, rows = row % num_rows, self._upload(rows_TN)
        cut = num_rows - begin
        self._lanes[lane, begin : begin + len(rows_TN)].copy_(rows[:cut], non_blocking=True)
        if len(rows_TN) > cut:
            self._lanes[lane, : len(rows_TN) - cut].copy_(rows[cut:], non_blocking=True)

    def _upload(self, rows_TN: Array) -> Tensor:
        if self._device.type == "cpu":
            return torch.from_numpy(np.ascontiguousarray(rows_TN))
        return self._staged.next().upload(rows_TN)

    def gather(self, lane_B: Array, row_B: Array, env_B: Array, age_B: Array | None) -> Tensor:
        if age_B is None:
            return self._take(flat_index(self._shape, lane_B, row_B, env_B))
        at_BK, is_unseen_BK = stack_index(
            self._shape, lane_B, row_B, env_B, age_B, self._num_frames
        )
        stacks = self._take(at_BK)
        if is_unseen_BK.any():  # masked, not indexed: that would wait for the GPU
            mask_BK = self._to_device(is_unseen_BK)
            stacks.masked_fill_(mask_BK.view(*mask_BK.shape, *(1 for _ in stacks.shape[2:])), 0)
        return stacks

    def _take(self, index: Array) -> Tensor:
        found: Tensor = self._flat[self._to_device(index)]
        return found

    def _to_device(self, array: Array) -> Tensor:
        tensor = torch.from_numpy(array)
        if self._device.type == "cpu":
            return tensor
        WAITS.uploaded_bytes += array.nbytes
        return tensor.pin_memory().to(self._device, non_blocking=True)

    def replace(self, gathered: Tensor, place_B: Array, values_B: Array) -> None:
        gathered[self._to_device(place_B)] = self._to_device(np.ascontiguousarray(values_B))

    def read(self, lane: int, row: int, count: int) -> Array:
        rows = np.arange(row, row + count) % self._shape[0]
        return Download(self._lanes[lane, self._to_device(rows)]).read()


class Block(Protocol):
    """Memory that may be in use for a while after it was given out."""

    @property
    def is_busy(self) -> bool: ...


BlockT = TypeVar("BlockT", bound=Block)


class Turns(Generic[BlockT]):
    """Blocks that are used in turn. While the oldest one is busy, more are made, up to a number."""

    def __init__(self, make: Callable[[], BlockT], most: int) -> None:
        self._make = make
        self._most = most
        self._blocks: list[BlockT] = []
        self._next = 0

    def next(self) -> BlockT:
        """Return the block that was given out the longest time ago, busy or not, or a new one."""
        index = self._next if self._next < len(self._blocks) else 0
        is_full = len(self._blocks) == self._most
        if not self._blocks or (self._blocks[index].is_busy and not is_full):
            self._blocks.insert(index, self._make())
        self._next = index + 1
        return self._blocks[index]


class _Staged:
    """Pinned memory of one upload, and the tensor on the GPU that it goes to."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pinned = torch.empty(0)
        self._is_copied = make_event()

    @property
    def is_busy(self) -> bool:
        return not self._is_copied.query()  # type: ignore[no-untyped-call]

    def upload(self, rows_TN: Array) -> Tensor:
        """Return the rows on the GPU; they are there when its stream comes to what follows."""
        WAITS.wait_for(self._is_copied)
        rows = torch.from_numpy(np.ascontiguousarray(rows_TN))
        if self._pinned.dtype != rows.dtype or self._pinned.numel() < rows.numel():
            self._pinned = torch.empty(rows.numel(), dtype=rows.dtype, pin_memory=True)
        pinned = self._pinned[: rows.numel()].view(rows.shape)
        pinned.copy_(rows)
        uploaded = pinned.to(self._device, non_blocking=True)
        WAITS.uploaded_bytes += rows.nbytes
        self._is_copied.record(torch.cuda.current_stream(self._device))
        return uploaded


def on_device(device: torch.device) -> MakeObservations:
    """Return a function that makes the observations of rings on this device."""
    return partial(DeviceObservations, device)
