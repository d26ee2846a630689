"""Functions of tensors as CUDA graphs: recorded once, then launched as a whole.

    gradient = Recorded(compute_gradient)
    found = gradient(minibatch)           # the first call with these shapes records
    found = gradient(another)             # later ones copy the inputs and launch the graph

A small network's update has a hundred kernels, and launching them one by one takes longer than
running them. A graph launches them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeVar

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

P = ParamSpec("P")
Result = TypeVar("Result")

WARM_UPS = 3
"""Runs before the recording: libraries choose their kernels and allocate in the first ones."""


@dataclass(frozen=True, slots=True)
class _Recording(Generic[Result]):
    inputs: list[Any]
    """The memory that the graph reads, and constants."""
    graph: torch.cuda.CUDAGraph
    result: Result
    """Tensors in the memory that the graph writes; the next launch overwrites them."""


NO_ARGUMENTS = pytree.tree_flatten(((), {}))[1]


class Recorded(Generic[P, Result]):
    """A function on a GPU without synchronisation, and without shapes that depend on data.

    Its arguments are tensors and constants, or tuples and dictionaries of them; other constants or
    shapes make another recording. What it uses beside them must keep its memory.
    """

    def __init__(
        self, function: Callable[P, Result], changes: Callable[[], Sequence[Tensor]] = tuple
    ) -> None:
        """changes: returns the tensors that the function changes, whose values the runs before the
        recording must not touch."""
        self._function = function
        self._changes = changes
        self._recordings: dict[tuple[Any, ...], _Recording[Result]] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Result:
        key: tuple[Any, ...] = ()
        leaves: list[Any] = []
        spec = NO_ARGUMENTS
        if args or kwargs:
            leaves, spec = pytree.tree_flatten((args, kwargs))
            key = (spec, *(_kind(leaf) for leaf in leaves))
        recording = self._recordings.get(key)
        if recording is None:
            recording = self._recordings[key] = self._record(leaves, spec)
        for mine, given in zip(recording.inputs, leaves, strict=True):
            if isinstance(mine, Tensor):
                mine.copy_(given, non_blocking=True)
        recording.graph.replay()
        return recording.result

    def _record(self, leaves: list[Any], spec: pytree.TreeSpec) -> _Recording[Result]:
        inputs = [leaf.detach().clone() if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        args, kwargs = pytree.tree_unflatten(inputs, spec)
        kept = [tensor.clone() for tensor in self._changes()]
        stream: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                self._function(*args, **kwargs)
            for tensor, value in zip(self._changes(), kept, strict=True):
                tensor.copy_(value)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        # Other threads of this process may use the GPU meanwhile, hence "thread_local".
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            result = self._function(*args, **kwargs)
        return _Recording(inputs, graph, result)


def _kind(leaf: Any) -> Any:
    return (leaf.shape, leaf.dtype) if isinstance(leaf, Tensor) else leaf


def recorded(
    device: torch.device,
    function: Callable[P, Result],
    changes: Callable[[], Sequence[Tensor]] = tuple,
) -> Callable[P, Result]:
    """Return the function as a CUDA graph on a GPU, and unchanged on a CPU."""
    return Recorded(function, changes) if device.type == "cuda" else function
