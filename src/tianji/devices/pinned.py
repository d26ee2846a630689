"""Host memory that a GPU reads and writes by itself.

A copy from ordinary memory goes through a buffer of the driver, and its caller waits. Slots of
shared memory are therefore registered with the driver once, when a role starts.
"""

from __future__ import annotations

from typing import Any

import torch

from tianji.errors import TianjiError
from tianji.types import Array


def pin(memory: Array) -> None:
    """Register the memory of a contiguous array, which must stay where it is."""
    error = _cudart().cudaHostRegister(memory.ctypes.data, memory.nbytes, 0)
    if int(error) != 0:
        raise TianjiError(
            f"The GPU's driver could not pin {memory.nbytes / 2**20:.0f} MiB of shared memory "
            f"(error {int(error)}). Raise the limit on locked memory (`ulimit -l unlimited`), or "
            "make the slots smaller (num_envs, unroll_length)."
        )


def _cudart() -> Any:
    return torch.cuda.cudart()  # type: ignore[no-untyped-call]
