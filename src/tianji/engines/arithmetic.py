"""How torch computes while a run goes on: with how many threads, and what of tiny numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

_TINY = 1e-40  # below the smallest normal float32


def use_threads(count: int) -> None:
    """What the plan gives to the side that works now."""
    if torch.get_num_threads() != count:
        torch.set_num_threads(count)


def flush_tiny_numbers() -> None:
    """From now on in this thread, and in threads that it starts, numbers under the normal range are
    zero. Otherwise the optimiser's averages for a unit without gradients decay until they are stuck
    at the smallest number of all, and arithmetic on those takes many times as long: a DQN learner
    with 256 x 256 units went from 1.6 to 2.9 ms an update after some seconds on an Intel Xeon.
    """
    torch.set_flush_denormal(True)


@contextlib.contextmanager
def arithmetic_of_a_run() -> Iterator[None]:
    """For engines that compute in the caller's own process: the caller gets its own back. Threads
    that torch has started there before keep theirs."""
    threads = torch.get_num_threads()
    was_flushing = bool((torch.full((1,), _TINY) * 1.0 == 0.0).item())
    flush_tiny_numbers()
    try:
        yield
    finally:
        torch.set_flush_denormal(was_flushing)
        use_threads(threads)
