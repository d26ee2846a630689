"""Sentences about slow, uneven or memory-hungry environments, and about a noisy machine."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tianji.costs.profile import Cost
from tianji.planning.measure.measurement import Point
from tianji.wording import to_percent

SLOW_STEP_S = 0.005
SLOW_RESET_S = 0.001  # a shorter reset does no harm, whatever its factor
UNEVEN = 5.0
HUNGRY_BYTES = 100 << 20
NOISY = 0.10
BUSY = 0.10


def remarks(points: Sequence[Point], costs: Sequence[Cost]) -> tuple[str, ...]:
    """Return what a person should know about the environment and the machine."""
    seen = min(points, key=lambda point: point.plan.envs_per_actor).alone
    uneven, env_bytes = seen.cost.unevenness, memory_per_environment(points)
    busy, noise = _disturbed_share(points), max(cost.noise for cost in costs)
    is_slow_reset = seen.reset_factor > UNEVEN and seen.step_s * seen.reset_factor >= SLOW_RESET_S
    found = (
        seen.step_s > SLOW_STEP_S
        and f"The environment is slow: one step takes {seen.step_s * 1e3:.0f} ms, so one actor "
        f"makes at most {1 / seen.step_s:,.0f} steps/s.",
        uneven > UNEVEN
        and f"Step times vary: one step in a hundred takes {uneven:.0f} times as long as usual, "
        "and the other environments of the same actor wait for it.",
        is_slow_reset
        and f"Resets are slow: a step that includes a reset takes {seen.reset_factor:.0f} times "
        "as long as one that does not.",
        env_bytes > HUNGRY_BYTES
        and f"Each environment takes much memory: {env_bytes / 2**20:,.0f} MiB.",
        busy > BUSY
        and "Other programs use this machine: a process that was measured alone waited for a core "
        f"{to_percent(busy)} of the time. Measured costs exclude that; the predicted rate does "
        "not.",
        noise > NOISY
        and f"The measurement is noisy: numbers vary by +-{to_percent(noise)}. Measure again when "
        "no other program uses the machine.",
    )
    return tuple(sentence for sentence in found if sentence)


def is_disturbed(points: Sequence[Point]) -> bool:
    """Return whether other programs used the machine during the measurement."""
    return _disturbed_share(points) > BUSY


def _disturbed_share(points: Sequence[Point]) -> float:
    return statistics.median(point.alone.disturbed_share for point in points)


def memory_per_environment(points: Sequence[Point]) -> float:
    """Return how much memory each further environment takes; with one point, each at all."""
    few, *_, many = sorted([points[0], *points], key=lambda point: point.plan.envs_per_actor)
    more = many.plan.envs_per_actor - few.plan.envs_per_actor
    if more == 0:
        return few.built.grown_bytes / few.plan.envs_per_actor
    return (many.built.memory_bytes - few.built.memory_bytes) / more
