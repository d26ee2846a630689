"""What a person should know about their environment and machine, in words."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tianji.costs.profile import ActorCost, LearnerCost
from tianji.planning.measure.measurement import Point

SLOW_STEP_S = 0.005
UNEVEN = 5.0
HUNGRY_BYTES = 100 << 20
NOISY = 0.10
BUSY = 0.10


def remarks(
    points: Sequence[Point], actors: Sequence[ActorCost], learners: Sequence[LearnerCost]
) -> tuple[str, ...]:
    """Sentences about slow, uneven or memory-hungry environments, and about noise."""
    smallest = min(points, key=lambda point: point.plan.envs_per_actor)
    found = [
        _slow(smallest.alone.step_s),
        _uneven(smallest.alone.unevenness),
        _resets(smallest.alone.reset_factor, smallest.alone.step_s),
        _hungry(memory_per_environment(points)),
        _busy(_disturbed_share(points)),
        _noisy([cost.unroll.noise for cost in actors] + [cost.version.noise for cost in learners]),
    ]
    return tuple(sentence for sentence in found if sentence)


def is_disturbed(points: Sequence[Point]) -> bool:
    """What was measured alone had to wait for a core."""
    return _disturbed_share(points) > BUSY


def _disturbed_share(points: Sequence[Point]) -> float:
    return statistics.median(point.alone.disturbed_share for point in points)


def memory_per_environment(points: Sequence[Point]) -> float:
    """By how much a process grows with each further environment; with a single point, with each
    at all."""
    few, *_, many = sorted([points[0], *points], key=lambda point: point.plan.envs_per_actor)
    more = many.plan.envs_per_actor - few.plan.envs_per_actor
    if more == 0:
        return few.built.grown_bytes / few.plan.envs_per_actor
    return (many.built.memory_bytes - few.built.memory_bytes) / more


def _slow(step_s: float) -> str:
    if step_s <= SLOW_STEP_S:
        return ""
    return (
        f"The environment is slow: one step takes {step_s * 1e3:.0f} ms, so one actor makes at "
        f"most {1 / step_s:,.0f} steps/s."
    )


def _uneven(factor: float) -> str:
    if factor <= UNEVEN:
        return ""
    return (
        f"Step times vary: one step in a hundred takes {factor:.0f} times as long as usual, and "
        "the other environments of the same actor wait for it."
    )


def _resets(factor: float, step_s: float) -> str:
    if (
        factor <= UNEVEN or step_s * factor < SLOW_STEP_S / 5
    ):  # a reset of microseconds hurts no one
        return ""
    return (
        f"Resets are slow: a step that includes a reset takes {factor:.0f} times as long as one "
        "that does not."
    )


def _hungry(bytes_each: float) -> str:
    if bytes_each <= HUNGRY_BYTES:
        return ""
    return f"Each environment takes much memory: {bytes_each / 2**20:,.0f} MiB."


def _busy(share: float) -> str:
    if share <= BUSY:
        return ""
    return (
        f"Other programs use this machine: a process that was measured alone waited for a core "
        f"{share:.0%} of the time. Measured costs exclude that; the predicted rate does not."
    )


def _noisy(noises: Sequence[float]) -> str:
    worst = max(noises)
    if worst <= NOISY:
        return ""
    return (
        f"The measurement is noisy: numbers vary by +-{worst:.0%}. Measure again when no other "
        "program uses the machine."
    )
