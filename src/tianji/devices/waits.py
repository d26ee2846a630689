"""Waiting for a GPU: blocking, never spinning, and counted.

Each thread has its own stream of work, and waits only for that.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tianji.types import Array

if TYPE_CHECKING:  # simulations count waits too, and do without torch
    import torch
    from torch import Tensor


class Waits(threading.local):
    """Waits for what this thread has asked of a GPU, and counts how often."""

    def __init__(self) -> None:
        self._event: torch.cuda.Event | None = None
        self.count = 0
        self.uploaded_bytes = 0
        """Bytes that this thread has copied to a GPU."""

    def wait(self) -> None:
        """Sleep until the GPU has done everything that this thread's stream was asked to do."""
        if self._event is None:
            import torch

            self._event = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
        self._event.record()
        self._event.synchronize()
        self.count += 1


WAITS = Waits()
"""One for each thread; the learner's count is a figure of the run."""


class Download:
    """A copy of a tensor to the host, which has arrived when this thread has waited once."""

    def __init__(self, tensor: Tensor) -> None:
        self._host, self._waits_before = tensor.detach(), -1
        if tensor.is_cuda:
            import torch

            self._host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            self._host.copy_(tensor, non_blocking=True)
            self._waits_before = WAITS.count

    def read(self) -> Array:
        """Return the values; wait for them if this thread has not waited since."""
        if self._waits_before == WAITS.count:
            WAITS.wait()
        values: Array = self._host.numpy()
        return values


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

        self._names = list(values)
        joined = torch.stack([value.detach().float().reshape(()) for value in values.values()])
        self._values = Download(joined)

    def clear(self) -> None:
        """Forget what was taken."""
        self._values = None

    def read(self) -> dict[str, float]:
        """Return the numbers; wait for them if this thread has not waited since start()."""
        if self._values is None:
            return {}
        return dict(zip(self._names, self._values.read().tolist(), strict=True))
