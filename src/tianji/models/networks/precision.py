"""The precision in which a network computes: float32, or bfloat16 where that is faster."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

Function = TypeVar("Function", bound=Callable[..., Any])


class Precise(nn.Module):
    """A network whose parameters are float32 and whose products may be in bfloat16."""

    is_bfloat16 = False


def set_precision(module: nn.Module, is_bfloat16: bool) -> None:
    """Set the precision of all networks in a module."""
    for part in module.modules():
        if isinstance(part, Precise):
            part.is_bfloat16 = is_bfloat16


def is_bfloat16_fast() -> bool:
    """Return whether this CPU multiplies in bfloat16: AVX512_BF16 or AMX. Inference of the Nature
    network then takes 0.55 to 0.75 of its time, from 8 to 64 rows (AMD EPYC 9004)."""
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


def in_precision(function: Function) -> Function:
    """Make a method of a Precise network compute in its precision and return float32."""

    @wraps(function)
    def compute(self: Precise, *args: Any) -> Any:
        if not self.is_bfloat16:
            return function(self, *args)
        device = next(self.parameters()).device.type
        # Without a cache: casts of the weights must be part of a CUDA graph.
        with torch.autocast(device, torch.bfloat16, cache_enabled=False):
            found = function(self, *args)
        return found.float() if isinstance(found, Tensor) else tuple(x.float() for x in found)

    return compute  # type: ignore[return-value]
