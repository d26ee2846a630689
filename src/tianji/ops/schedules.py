"""Values that change during a run; pure functions of a counter that is carried with the data."""

from __future__ import annotations


def linear(start: float, final: float | None, share: float) -> float:
    """start + (final - start) * share, with share held in [0, 1]; constant when final is None."""
    if final is None:
        return start
    return start + (final - start) * min(max(share, 0.0), 1.0)


def linear_by_steps(start: float, final: float | None, step: int, num_steps: int) -> float:
    """Return start at step 0, final from num_steps on, and a straight line between them."""
    return linear(start, final, step / num_steps if num_steps else 1.0)
