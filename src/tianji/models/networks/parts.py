"""Convolutions on several cores: the rows are divided into parts, and each part has a thread.

Torch divides every single operation among its threads, which wait for each other dozens of times in
an update: if another process takes one of the cores for a moment, all cores wait. Parts wait for
each other twice, after the forward and after the backward pass.

    features_BD = in_parts(torso, images)       # the same as torso(images), and its gradient

B: rows, D: features of an image.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

Result = TypeVar("Result")

LEAST_ROWS = 32
"""Rows of a part, at least: the gradients of fewer take longer to add than to compute."""
MOST_PARTS = 4
"""Each part has a gradient of its own. With more cores, parts have several of torch's threads."""
ROWS_AT_ONCE = 128
"""Rows evaluated at once where no gradient is asked for: their layers stay in the cache."""


def in_parts(torso: nn.Module, images: Tensor) -> Tensor:
    """Return torso(images), computed on all of torch's threads."""
    if images.device.type != "cpu" or images.requires_grad or torch.compiler.is_compiling():
        return _features(torso, images)
    num_threads = torch.get_num_threads()
    num_parts = min(num_threads, MOST_PARTS, len(images) // LEAST_ROWS)
    if torch.is_grad_enabled() and num_parts > 1:
        threads = _threads(num_parts, num_threads // num_parts)
        found: Tensor = _Parts.apply(torso, images, threads, *torso.parameters())  # type: ignore[no-untyped-call]
        return found
    if torch.is_grad_enabled() or len(images) <= ROWS_AT_ONCE:
        return _features(torso, images)
    parts = torch.split(images, ROWS_AT_ONCE)
    compute = _as_here(torso)
    if num_parts > 1:
        return torch.cat(_threads(num_parts, num_threads // num_parts).map(compute, parts))
    return torch.cat([compute(part) for part in parts])


def _features(torso: nn.Module, images: Tensor) -> Tensor:
    found: Tensor = torso(images)
    return found


class _Parts(torch.autograd.Function):
    """The parameters are arguments, so that their gradients are added where torch wants them."""

    @staticmethod
    def forward(
        ctx: Any, torso: nn.Module, images: Tensor, threads: _Threads, *parameters: Tensor
    ) -> Tensor:
        with torch.enable_grad():
            compute = _as_here(torso)
        ctx.threads, ctx.parameters = threads, parameters
        ctx.outputs = threads.map(compute, images.tensor_split(threads.count))
        return torch.cat([output.detach() for output in ctx.outputs])

    @staticmethod
    def backward(ctx: Any, gradient_BD: Tensor) -> tuple[Any, ...]:
        def differentiate(output_and_gradient: tuple[Tensor, Tensor]) -> list[Tensor]:
            output, gradient = output_and_gradient
            return list(torch.autograd.grad(output, ctx.parameters, gradient))

        outputs, ctx.outputs = ctx.outputs, None  # the graphs can be used once
        gradients = torch.split(gradient_BD, [len(output) for output in outputs])
        first, *others = ctx.threads.map(differentiate, list(zip(outputs, gradients, strict=True)))
        for other in others:
            torch._foreach_add_(first, other)
        return None, None, None, *first


def _as_here(torso: nn.Module) -> Callable[[Tensor], Tensor]:
    """Return the torso as a function for other threads, with the modes of this one."""
    has_grad = torch.is_grad_enabled()
    is_autocast, dtype = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")

    def compute(images: Tensor) -> Tensor:
        with (
            torch.set_grad_enabled(has_grad),
            torch.autocast("cpu", dtype, enabled=is_autocast, cache_enabled=False),
        ):
            return _features(torso, images)

    return compute


class _Threads:
    """Threads that compute parts, each with so many of torch's own."""

    def __init__(self, count: int, threads_each: int) -> None:
        self.count = count
        begin = partial(torch.set_num_threads, threads_each)
        self._pool = ThreadPoolExecutor(count, "part", initializer=begin)

    def map(self, function: Callable[[Any], Result], parts: Sequence[Any]) -> list[Result]:
        """Return the results in the order of the parts."""
        return list(self._pool.map(function, parts))


_all_threads: dict[tuple[int, int], _Threads] = {}


def _threads(count: int, threads_each: int) -> _Threads:
    """Return the threads for so many parts, which are started once."""
    found = _all_threads.get((count, threads_each))
    if found is None:
        found = _all_threads[count, threads_each] = _Threads(count, threads_each)
    return found
