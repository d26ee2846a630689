"""CUDA graphs on a machine without a GPU: results lie in memory that every launch overwrites."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from tianji.devices import graphs
from tianji.devices.graphs import WARM_UPS, Recorded, _copied, _Recording, _take_apart

USERS = (
    "tianji.algorithms.gradient",
    "tianji.algorithms.ppo.recorded",
    "tianji.algorithms.accelerators.lanes",
    "tianji.models.optimizers",
)


class FakeGraph:
    """Runs the function on the recorded inputs and writes to the results of the recording."""

    num_running = 0
    num_launches = 0

    def __init__(self, function: Callable[[], Any], results: list[Any]) -> None:
        self._function = function
        self._results = results

    def replay(self) -> None:
        FakeGraph.num_launches += 1
        with running():
            found = pytree.tree_leaves(self._function())
            for mine, new in zip(self._results, found, strict=True):
                if isinstance(mine, Tensor):
                    mine.copy_(new.detach())


@contextmanager
def running() -> Iterator[None]:
    """What is called inside is part of a graph."""
    FakeGraph.num_running += 1
    yield
    FakeGraph.num_running -= 1


def _record(self: Recorded[Any, Any], args: Any, kwargs: Any) -> _Recording[Any]:
    args, kwargs = _copied((args, kwargs))
    inputs: list[Tensor] = []
    _take_apart((args, kwargs), inputs, [])
    kept = [tensor.clone() for tensor in self._changes()]
    with running():
        for _ in range(WARM_UPS):
            result = self._function(*args, **kwargs)
    for tensor, value in zip(self._changes(), kept, strict=True):
        tensor.copy_(value)
    # Recording computes nothing, so that results are anything before the first launch.
    result = pytree.tree_map_only(Tensor, lambda x: torch.zeros_like(x.detach()), result)
    graph: Any = FakeGraph(lambda: self._function(*args, **kwargs), pytree.tree_leaves(result))
    return _Recording(inputs, graph, result)


def use_fake_graphs(monkeypatch: Any) -> None:
    """Let everything that is recorded on a GPU be recorded on the CPU."""
    monkeypatch.setattr(Recorded, "_record", _record)
    for user in (graphs.__name__, *USERS):
        monkeypatch.setattr(
            f"{user}.recorded", lambda device, function, changes=tuple: Recorded(function, changes)
        )


class Calls(TorchDispatchMode):
    """Counts the calls of torch outside of graphs."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        if not FakeGraph.num_running:
            self.count += 1
        return function(*args, **(kwargs or {}))
