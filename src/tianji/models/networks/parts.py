"""Convolutions on several cores: the rows are divided into parts, and each part has a thread.

Torch divides every single operation among its threads, which wait for each other dozens of times in
an update: if another process takes one of the cores for a moment, all cores wait. Parts wait for
each other twice, after the forward and after the backward pass.

    features_BD = in_parts(torso, images)       # the same as torso(images), and its gradient

B: rows, D: features of an image.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from threading import Barrier
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
    counts = threads_of_parts(torch.get_num_threads(), len(images))
    if torch.is_grad_enabled():
        parameters = list(torso.parameters())
        if len(counts) == 1 or not all(parameter.requires_grad for parameter in parameters):
            return _features(torso, images)
        found: Tensor = _Parts.apply(torso, images, _threads(counts), *parameters)  # type: ignore[no-untyped-call]
        return found
    if len(images) <= ROWS_AT_ONCE:
        return _features(torso, images)
    parts = torch.split(images, ROWS_AT_ONCE)
    compute = _as_here(torso)
    if len(counts) > 1:
        return torch.cat(_threads(counts).map(compute, parts))
    return torch.cat([compute(part) for part in parts])


def threads_of_parts(num_threads: int, num_rows: int) -> tuple[int, ...]:
    """Return the number of torch's threads of each part: together they are all threads."""
    num_parts = min(num_threads, MOST_PARTS)
    while num_parts > 1 and num_rows * (num_threads // num_parts) < LEAST_ROWS * num_threads:
        num_parts -= 1
    fewest, num_with_one_more = divmod(num_threads, num_parts)
    return tuple(fewest + (part < num_with_one_more) for part in range(num_parts))


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
        ctx.outputs = threads.map(compute, threads.split(images))
        return torch.cat([output.detach() for output in ctx.outputs])

    @staticmethod
    def backward(ctx: Any, gradient_BD: Tensor) -> tuple[Any, ...]:
        def differentiate(output_and_gradient: tuple[Tensor, Tensor]) -> list[Tensor]:
            output, gradient = output_and_gradient
            return list(torch.autograd.grad(output, ctx.parameters, gradient))

        if torch.is_grad_enabled():
            raise RuntimeError("convolutions in parts have no second derivative (create_graph)")
        outputs, ctx.outputs = ctx.outputs, None  # the graphs can be used once
        if outputs is None:
            raise RuntimeError("convolutions in parts have only one backward pass (retain_graph)")
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
    """Threads that compute parts, each limited to its own number of torch threads."""

    def __init__(self, counts: tuple[int, ...]) -> None:
        self._counts = counts
        here = torch.get_num_threads()
        self._pools = {each: _started(counts.count(each), each) for each in set(counts)}
        torch.set_num_threads(here)  # the last number set is the default of every new thread

    def split(self, rows: Tensor) -> Sequence[Tensor]:
        """Divide the rows into one part for each thread, in proportion to its torch threads."""
        before = list(accumulate(self._counts))
        return rows.tensor_split([-(-len(rows) * some // before[-1]) for some in before[:-1]])

    def map(self, function: Callable[[Any], Result], parts: Sequence[Any]) -> list[Result]:
        """Return the results in the order of the parts.

        A part always has the same number of torch threads, since results can differ in their last
        bits with it: the number of the thread that would finish first. The first parts have one
        thread each, in order.
        """
        taken = [0] * len(self._counts)
        futures = []
        for part in parts:
            _, _, thread = min(
                ((num + 1) / each, num, thread)
                for thread, (num, each) in enumerate(zip(taken, self._counts, strict=True))
            )
            taken[thread] += 1
            futures.append(self._pools[self._counts[thread]].submit(function, part))
        return [future.result() for future in futures]


def _started(num_threads: int, torch_threads: int) -> ThreadPoolExecutor:
    """Return a pool with all its threads running, each limited to so many torch threads."""

    def begin() -> None:
        torch.get_num_threads()  # the first use in a thread sets the default, so it comes first
        torch.set_num_threads(torch_threads)

    pool = ThreadPoolExecutor(num_threads, "part", initializer=begin)
    all_run = Barrier(num_threads)
    for future in [pool.submit(all_run.wait) for _ in range(num_threads)]:
        future.result()
    return pool


_all_threads: dict[tuple[int, ...], _Threads] = {}
os.register_at_fork(after_in_child=_all_threads.clear)  # a forked process has none of the threads


def _threads(counts: tuple[int, ...]) -> _Threads:
    """Return the threads for parts with these numbers of torch threads, which are started once."""
    found = _all_threads.get(counts)
    if found is None:
        found = _all_threads[counts] = _Threads(counts)
    return found
