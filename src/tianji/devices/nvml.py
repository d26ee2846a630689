"""What NVIDIA's driver says about its GPUs, without loading torch.

Its library comes with the driver. The functions used are stable since 2012.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from functools import cache
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
NAME_BYTES = 96


@dataclass(frozen=True, slots=True)
class Gpu:
    """Gpu(index=0, name="NVIDIA H200", total_bytes=150_000_000_000, free_bytes=149_000_000_000)

    index: its number as `cuda:N`
    """

    index: int
    name: str
    total_bytes: int
    free_bytes: int


class _Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class _Utilization(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint) for name in ("gpu", "memory")]


@cache
def _library() -> Any:
    """Return the library, ready for use; None where there is no driver."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return None
    return library if library.nvmlInit_v2() == 0 else None


def _handles() -> list[ctypes.c_void_p]:
    """Return the GPUs that this process may use, in the order of `cuda:N`."""
    library = _library()
    if library is None:
        return []
    count = ctypes.c_uint()
    library.nvmlDeviceGetCount_v2(ctypes.byref(count))
    handles = []
    for index in range(count.value):
        handle = ctypes.c_void_p()
        if library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == 0:
            handles.append(handle)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return handles
    numbers = [int(part) for part in visible.split(",") if part.strip().isdigit()]
    return [handles[number] for number in numbers if number < len(handles)]


def list_gpus() -> list[Gpu]:
    """Return the GPUs that this process may use."""
    library, found = _library(), []
    for index, handle in enumerate(_handles()):
        name, memory = ctypes.create_string_buffer(NAME_BYTES), _Memory()
        library.nvmlDeviceGetName(handle, name, NAME_BYTES)
        library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
        found.append(Gpu(index, name.value.decode(), memory.total, memory.free))
    return found


def busy_share(index: int) -> float | None:
    """Return the share of the last moment in which the GPU ran a kernel; None if unknown."""
    library, handles = _library(), _handles()
    if index >= len(handles):
        return None
    used = _Utilization()
    if library.nvmlDeviceGetUtilizationRates(handles[index], ctypes.byref(used)) != 0:
        return None
    return float(used.gpu) / 100.0
