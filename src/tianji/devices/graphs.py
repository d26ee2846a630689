"""Functions of tensors as CUDA graphs: recorded once, then launched as a whole.

    gradient = Recorded(compute_gradient)
    found = gradient(minibatch)           # the first call with these shapes records
    found = gradient(another)             # later ones copy the inputs and launch the graph

A small network's update has a hundred kernels, and launching them one by one takes longer than
running them. A graph launches them at once.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import Any, Generic, ParamSpec, TypeVar

import torch
from torch import Tensor

P = ParamSpec("P")
Result = TypeVar("Result")

WARM_UPS = 3
"""Runs before the recording: libraries choose their kernels and allocate in the first ones."""


@dataclass(frozen=True, slots=True)
class _Recording(Generic[Result]):
    inputs: list[Tensor]
    """The memory that the graph reads."""
    graph: torch.cuda.CUDAGraph
    result: Result
    """Tensors in the memory that the graph writes; the next launch overwrites them."""


class Recorded(Generic[P, Result]):
    """A function on a GPU without synchronisation, and without shapes that depend on data.

    Its arguments are tensors and constants, or tuples and dictionaries of them; other constants or
    shapes make another recording. What it uses beside them must keep its memory. A function without
    arguments costs its caller the launch and nothing else.
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
        given: list[Tensor] = []
        key: list[Any] = []
        if args or kwargs:
            _take_apart((args, kwargs), given, key)
        recording = self._recordings.get(tuple(key))
        if recording is None:
            recording = self._recordings[tuple(key)] = self._record(args, kwargs)
        for mine, other in zip(recording.inputs, given, strict=True):
            mine.copy_(other, non_blocking=True)
        recording.graph.replay()
        return recording.result

    def _record(self, args: Any, kwargs: Any) -> _Recording[Result]:
        args, kwargs = _copied((args, kwargs))
        inputs: list[Tensor] = []
        _take_apart((args, kwargs), inputs, [])
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
        capture = torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local")
        with without_collection(), capture:
            result = self._function(*args, **kwargs)
        return _Recording(inputs, graph, result)


_recording = RLock()


@contextmanager
def without_collection() -> Iterator[None]:
    """Switch the garbage collector off: a graph that it frees during a recording spoils that
    recording. Threads take turns, because there is one switch for the whole process. What loses its
    last reference is freed all the same."""
    with _recording:
        was_on = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if was_on:
                gc.enable()


def _take_apart(value: Any, tensors: list[Tensor], key: list[Any]) -> None:
    """Append the tensors of an argument, and what tells its recordings apart. torch's own function
    for trees takes ten times as long."""
    if isinstance(value, Tensor):
        tensors.append(value)
        key.append((value.shape, value.dtype))
    elif isinstance(value, tuple):
        key.append((type(value), len(value)))
        for part in value:
            _take_apart(part, tensors, key)
    elif isinstance(value, dict):
        key.append(tuple(value))
        for part in value.values():
            _take_apart(part, tensors, key)
    else:
        key.append(value)


def _copied(value: Any) -> Any:
    """Return an argument with its tensors copied to memory of their own."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, tuple):
        parts = [_copied(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, dict):
        return {name: _copied(part) for name, part in value.items()}
    return value


def recorded(
    device: torch.device,
    function: Callable[P, Result],
    changes: Callable[[], Sequence[Tensor]] = tuple,
) -> Callable[P, Result]:
    """Return the function as a CUDA graph on a GPU, and unchanged on a CPU."""
    return Recorded(function, changes) if device.type == "cuda" else function
