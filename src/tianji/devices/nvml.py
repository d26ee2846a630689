"""What NVIDIA's driver says about its GPUs, without loading torch.

Its library comes with the driver. The functions used are stable since 2012.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
CUDA_LIBRARY = "libcuda.so.1"
NAME_BYTES = 96
BUS_ID_BYTES = 32


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
    # CUDA numbers the fastest GPU first; those of one kind are in the order of their slots.
    is_by_slot = os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    if not is_by_slot and len({_text(library.nvmlDeviceGetName, h) for h in handles}) > 1:
        bus_ids = cuda_bus_ids()
        if bus_ids is not None:
            return _by_bus_id(bus_ids)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return handles if visible is None else _visible(handles, visible)


def _text(function: Callable[..., int], handle: ctypes.c_void_p) -> str:
    """Return a property of a GPU that the library gives as text."""
    text = ctypes.create_string_buffer(NAME_BYTES)
    function(handle, text, NAME_BYTES)
    return text.value.decode()


def _visible(handles: Sequence[ctypes.c_void_p], visible: str) -> list[ctypes.c_void_p]:
    """Return the GPUs that CUDA_VISIBLE_DEVICES names: by number, by UUID or the beginning of one.
    As for CUDA, those after a name that is wrong do not count, and a list with repetitions names
    none."""
    library = _library()
    uuids = [_text(library.nvmlDeviceGetUUID, handle) for handle in handles]
    found: list[ctypes.c_void_p] = []
    named: list[str] = []
    for name in (part.strip() for part in visible.split(",")):
        if name.isdigit() and int(name) < len(handles):
            handle, uuid = handles[int(name)], uuids[int(name)]
        elif name.startswith("GPU-") and len(fits := [u for u in uuids if u.startswith(name)]) == 1:
            handle, uuid = handles[uuids.index(fits[0])], fits[0]
        elif name.startswith("MIG-"):  # a part of a GPU
            handle, uuid = ctypes.c_void_p(), name
            if library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle)) != 0:
                break
        else:
            break
        if uuid in named:
            return []
        found.append(handle)
        named.append(uuid)
    return found


def _by_bus_id(bus_ids: Sequence[bytes]) -> list[ctypes.c_void_p]:
    library, found = _library(), []
    for bus_id in bus_ids:
        handle = ctypes.c_void_p()
        if library.nvmlDeviceGetHandleByPciBusId_v2(bus_id, ctypes.byref(handle)) == 0:
            found.append(handle)
    return found


@cache
def cuda_bus_ids() -> tuple[bytes, ...] | None:
    """Return where the GPUs that CUDA sees are plugged in, in its own order; None if it cannot be
    asked. This loads CUDA's driver, which takes longer than the management library."""
    try:
        cuda = ctypes.CDLL(CUDA_LIBRARY)
    except OSError:
        return None
    count = ctypes.c_int()
    if cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return None
    found = []
    for index in range(count.value):
        device, bus_id = ctypes.c_int(), ctypes.create_string_buffer(BUS_ID_BYTES)
        cuda.cuDeviceGet(ctypes.byref(device), index)
        if cuda.cuDeviceGetPCIBusId(bus_id, BUS_ID_BYTES, device) != 0:
            return None
        found.append(bus_id.value)
    return tuple(found)


def list_gpus() -> list[Gpu]:
    """Return the GPUs that this process may use."""
    library, found = _library(), []
    for index, handle in enumerate(_handles()):
        name, memory = _text(library.nvmlDeviceGetName, handle), _Memory()
        library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
        found.append(Gpu(index, name, memory.total, memory.free))
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
