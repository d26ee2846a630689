"""Random actions, and a first measurement of step times: their mean and how much they vary."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gymnasium import spaces

from tianji.envs.interface import World
from tianji.envs.masks import to_legal
from tianji.types import OBS, Array, Unroll, leaf_name

LOOK_S = 0.1
"""Seconds of measuring if all steps are short."""
LONG_LOOK_S = 1.0
"""Seconds of measuring once a step has taken LONG_STEP_S, to see how often that happens."""
LONG_STEP_S = 0.02
"""Longer than a busy machine usually keeps a process off its core."""
MOST_STEPS = 5000
NUM_ACTIONS = 64
UNEVEN = 5.0
"""A step that takes this many times the median is a long one."""


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Seconds of one step of all environments of a world.

    >>> StepTimes(1, mean_s=4e-3, median_s=1e-5, longest_s=0.2, long_share=0.02, cpu_s=1e-5)
    """

    num_envs: int
    mean_s: float
    median_s: float
    longest_s: float
    long_share: float
    """Share of the steps that take more than UNEVEN medians and more than LONG_STEP_S."""
    cpu_s: float
    """Mean processor time; less than mean_s if steps wait for something."""

    @property
    def is_uneven(self) -> bool:
        """True if most steps are short, but the long ones take most of the time."""
        return 0 < self.long_share < 0.5 and self.mean_s > 2 * self.median_s

    def in_words(self) -> str:
        """Return a sentence about how even the step times are."""
        if not self.is_uneven:
            return f"Step times are even: {_ms(self.median_s)} a step."
        return (
            f"Step times are uneven: {100 * self.long_share:.1f} % of the steps take up to "
            f"{_ms(self.longest_s)}, a typical one takes {_ms(self.median_s)}."
        )


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


def random_actions(world: World, num_rows: int) -> Array:
    """Return the same random actions in every call, as policies make them: integers from 0."""
    space = world.spaces.action
    space.seed(1)
    sampled = np.array([space.sample() for _ in range(num_rows * world.num_envs)])
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        sampled = sampled - space.start
    return sampled.reshape(num_rows, world.num_envs, *(space.shape or ()))


def step_in_place(world: World, actions: Array, rows: Unroll) -> None:
    """Make a step in row 0, with legal actions in place of illegal ones; what the next one needs
    moves to the beginning."""
    mask, spaces = world.spaces.mask, world.spaces
    world.step(to_legal(actions, rows, 0, spaces), rows, 0)
    if mask is not None:
        masks = rows[leaf_name(OBS, mask)]
        masks[0] = masks[1]


def look_at_steps(world: World, rows: Unroll, look_s: float = LOOK_S) -> StepTimes:
    """Measure a few steps of a world that was reset; what one raises is passed on.

    rows: arrays for one step (make_rows). look_s: seconds to measure while all steps are short.
    """
    taken_s: list[float] = []
    longest_s, queued_s = 0.0, _queued_s()
    began, began_cpu = time.perf_counter(), time.process_time()
    for actions in itertools.islice(
        itertools.cycle(random_actions(world, NUM_ACTIONS)), MOST_STEPS
    ):
        before = time.perf_counter()
        step_in_place(world, actions, rows)
        after = time.perf_counter()
        took_s = after - before
        if took_s > LONG_STEP_S:  # leave out the time that other programs had the core
            queued_before_s, queued_s = queued_s, _queued_s()
            took_s = max(0.0, took_s - (queued_s - queued_before_s))
        taken_s.append(took_s)
        longest_s = max(longest_s, took_s)
        if after - began > (LONG_LOOK_S if longest_s > LONG_STEP_S else look_s):
            break
    cpu_s = (time.process_time() - began_cpu) / len(taken_s)
    return summarise(taken_s, world.num_envs, None if _has_children() else cpu_s)


def summarise(taken_s: Sequence[float], num_envs: int, cpu_s: float | None) -> StepTimes:
    """Return the statistics of step times; cpu_s: processor time of a step, None if unknown."""
    mean_s, median_s = statistics.fmean(taken_s), statistics.median(taken_s)
    bound_s = max(UNEVEN * median_s, LONG_STEP_S)
    return StepTimes(
        num_envs=num_envs,
        mean_s=mean_s,
        median_s=median_s,
        longest_s=max(taken_s),
        long_share=sum(one > bound_s for one in taken_s) / len(taken_s),
        cpu_s=mean_s if cpu_s is None else min(mean_s, cpu_s),
    )


def _queued_s() -> float:
    """Return how long this thread has waited for a core so far; 0 if unknown."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _has_children() -> bool:
    """Return whether this process has started others, whose processor time it cannot measure."""
    lists = Path("/proc/self/task").glob("*/children")
    try:
        return any(path.read_text().strip() for path in lists)
    except OSError:
        return False
