"""Values that change while a run goes on; pure functions of a counter carried with the data."""

from __future__ import annotations


def linear(start: float, final: float | None, share: float) -> float:
    """start + (final - start) * share, with share held in [0, 1]; constant when final is None."""
    if final is None:
        return start
    return start + (final - start) * min(max(share, 0.0), 1.0)


def linear_by_steps(start: float, final: float | None, step: int, num_steps: int) -> float:
    """From start at step 0 to final at num_steps, and final from there on."""
    return linear(start, final, step / num_steps if num_steps else 1.0)
