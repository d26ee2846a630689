"""Small arrays that cross to a GPU together: one copy, however many they are.

    staging = Staging({"reward": ((32, 128), "float32"), "valid": ((32, 128), "bool")}, device)
    staging.host["reward"][:] = reward
    staging.upload()                      # staging.device["reward"] has it, in stream order

Every copy costs its caller ten microseconds, whatever its size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from tianji.devices.waits import WAITS, make_event
from tianji.types import Array

Kind: TypeAlias = tuple[tuple[int, ...], str]
"""Shape and dtype."""
ALIGNMENT = 64


class Staging:
    """Arrays of fixed shapes in one pinned memory, and their mirrors on a device.

    Who fills it twice before the device was waited for calls settle() in between.
    """

    def __init__(self, kinds: Mapping[str, Kind], device: torch.device) -> None:
        """kinds: the arrays in the order of their memory."""
        places, size = {}, 0
        for name, (shape, dtype) in kinds.items():
            nbytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
            places[name] = slice(size, size + nbytes)
            size += -(-nbytes // ALIGNMENT) * ALIGNMENT
        is_gpu = device.type == "cuda"
        self._bytes = torch.zeros(size, dtype=torch.uint8, pin_memory=is_gpu)
        self._mirror = torch.zeros(size, dtype=torch.uint8, device=device)
        self._event = make_event() if is_gpu else None
        self._beginnings: dict[int, tuple[Tensor, Tensor]] = {size: (self._mirror, self._bytes)}
        self.host: dict[str, Array] = {}
        self.device: dict[str, Tensor] = {}
        for name, (shape, dtype) in kinds.items():
            host = self._bytes.numpy()[places[name]].view(dtype)
            self.host[name] = host.reshape(shape)
            kind = torch.from_numpy(host).dtype
            self.device[name] = self._mirror[places[name]].view(kind).view(shape)
        self._places = places
        self.nbytes = size

    def settle(self) -> None:
        """Wait until the last upload has been read; this is no wait where it has been."""
        if self._event is not None:
            WAITS.wait_for(self._event)

    def upload(self) -> None:
        """Copy everything to the device, in the order of this thread's stream."""
        self._mirror.copy_(self._bytes, non_blocking=True)
        if self._event is not None:
            self._event.record()

    def upload_beginning(self, name: str, count: int) -> int:
        """Copy everything up to the first rows of one array; return the bytes. The caller waits for
        the device before it fills the memory again."""
        row_bytes = self.host[name].strides[0]
        size = self._places[name].start + count * row_bytes
        pair = self._beginnings.get(size)
        if pair is None:
            pair = self._beginnings[size] = self._mirror[:size], self._bytes[:size]
        pair[0].copy_(pair[1], non_blocking=True)
        return size
