"""Waiting for a GPU: blocking, never spinning, and counted."""

from __future__ import annotations

import torch
from torch import Tensor


class Waits:
    """Waits for what one thread has asked of a GPU, and counts how often.

    waits = Waits()
    copy = waits.download(tensor)      # starts a copy to the host
    waits.wait()                       # everything asked so far is done; copy has its values
    """

    def __init__(self) -> None:
        self._event: torch.cuda.Event | None = None
        self.count = 0

    def wait(self) -> None:
        """Sleep until the GPU has done everything that this thread's stream was asked to do."""
        if self._event is None:
            self._event = torch.cuda.Event(blocking=True)
        self._event.record()
        self._event.synchronize()
        self.count += 1


def pinned_like(tensor: Tensor) -> Tensor:
    """Return host memory of the same shape that a GPU can write to by itself."""
    return torch.empty_like(tensor, device="cpu", pin_memory=True)
