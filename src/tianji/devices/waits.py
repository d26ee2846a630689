"""Waiting for a GPU: blocking, never spinning, and counted.

Each thread has its own stream of work, and waits only for that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tianji.types import Array

if TYPE_CHECKING:  # simulations count waits too, and do without torch
    import torch
    from torch import Tensor


class Waits(threading.local):
    """Waits for what this thread has asked of a GPU, and counts how often."""

    def __init__(self) -> None:
        self._end: torch.cuda.Event | None = None
        self._mark: torch.cuda.Event | None = None
        self._is_marked = False
        self.count = 0
        self.num_complete = 0
        """Waits after which everything that was asked for is done."""
        self.earlier_ns = 0
        """Part of the waits in which the GPU was still busy with what came before a mark()."""
        self.uploaded_bytes = 0
        """Bytes that this thread has copied to a GPU."""

    def mark(self) -> None:
        """Divide the next wait: what is asked of the GPU from here on, and what came before."""
        self._mark = self._mark or make_event(has_time=True)
        self._mark.record()
        self._is_marked = True

    def wait(self) -> None:
        """Sleep until the GPU has done everything that this thread's stream was asked to do."""
        self._end = self._end or make_event(has_time=True)
        self._end.record()
        before_ns = time.monotonic_ns()
        self._end.synchronize()
        if self._is_marked and self._mark is not None:
            later_ns = int(self._mark.elapsed_time(self._end) * 1e6)
            self.earlier_ns += max(0, time.monotonic_ns() - before_ns - later_ns)
            self._is_marked = False
        self.count += 1
        self.num_complete += 1

    def wait_for(self, event: torch.cuda.Event) -> None:
        """Sleep until the GPU has come to this event; that is no wait if it has already."""
        if not event.query():  # type: ignore[no-untyped-call]
            event.synchronize()
            self.count += 1


def make_event(has_time: bool = False) -> torch.cuda.Event:
    """Return an event for which a thread waits asleep. has_time: it notes when it happened."""
    import torch

    return torch.cuda.Event(enable_timing=has_time, blocking=True)  # type: ignore[no-untyped-call]


WAITS = Waits()
"""One for each thread. Those of the learner and its buffer are a figure of the run, so that others
who wait on a learner's thread have one of their own."""


class Download:
    """A copy of a tensor to the host, which has arrived when this thread has waited once."""

    def __init__(self, tensor: Tensor) -> None:
        self._host, self._waits_before = tensor.detach(), -1
        if tensor.is_cuda:
            import torch

            self._host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            self._host.copy_(tensor, non_blocking=True)
            self._waits_before = WAITS.num_complete

    def tensor(self) -> Tensor:
        """Return the tensor on the host; wait for it if this thread has not waited since."""
        if self._waits_before == WAITS.num_complete:
            WAITS.wait()
        return self._host

    def read(self) -> Array:
        """Return the values; wait for them if this thread has not waited since."""
        values: Array = self.tensor().numpy()
        return values


def to_host(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return these tensors on the host; all that are on a GPU come with one wait."""
    downloads = {name: Download(tensor) for name, tensor in tensors.items()}
    return {name: download.tensor() for name, download in downloads.items()}


class Figures:
    """Numbers that an update leaves on its device, read together after the policy was published.

    figures.start({"loss": loss, "entropy": entropy})      # no wait
    ...                                                    # the learner publishes, and waits once
    figures.read()                                         # {"loss": 0.1, ...}
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        self._values: Download | None = None

    def start(self, values: Mapping[str, Tensor]) -> None:
        """Take these scalars; on a GPU, start one copy of all of them to the host."""
        import torch

        joined = torch.stack([value.detach().float().reshape(()) for value in values.values()])
        self.start_joined(list(values), joined)

    def start_joined(self, names: list[str], values: Tensor) -> None:
        """Take the numbers of a vector."""
        self._names, self._values = names, Download(values)

    def clear(self) -> None:
        """Forget what was taken."""
        self._values = None

    def read(self) -> dict[str, float]:
        """Return the numbers; wait for them if this thread has not waited since start()."""
        if self._values is None:
            return {}
        return dict(zip(self._names, self._values.read().tolist(), strict=True))
