"""Statistics of scores over seeds, with the formulas of rliable.

Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice".

Scores are given by task: one array for each task, with one row for each seed. A row is a number, or
an array of numbers such as a curve; then every statistic is one for each of its places.

    interquartile mean       IQM = mean of the middle half of all scores, seeds and tasks together
    stratified bootstrap     draw as many seeds of each task, with replacement, many times; the
                             interval has the statistic of 95 % of the draws
    P(X > Y)                 mean over tasks of 1/(N K) sum_ij [x_i > y_j] + [x_i = y_j] / 2

Shapes: R draws, N seeds of a task, M scores of all tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[np.float64]
ByTask: TypeAlias = Sequence[ArrayLike]

TRIMMED = 0.25
"""Share of the scores that the interquartile mean leaves out at each end."""
CONFIDENCE = 0.95
NUM_DRAWS = 2000
SEED = 20210830
"""Seed of the draws, so that the same scores always give the same interval."""


class Estimate(NamedTuple):
    """A statistic and its confidence interval. Both ends are None where no task has two seeds: one
    seed says nothing about the spread of seeds."""

    value: Array
    low: Array | None
    high: Array | None


def interquartile_mean(scores_M: ArrayLike, axis: int = 0) -> Array:
    """Return the mean of the scores without the lowest and the highest quarter, rounded down.

    >>> float(interquartile_mean([1.0, 2.0, 3.0, 4.0, 100.0]))
    3.0
    """
    ordered = np.sort(np.asarray(scores_M, dtype=np.float64), axis=axis)
    count = ordered.shape[axis]
    cut = int(TRIMMED * count)
    middle = np.take(ordered, range(cut, count - cut), axis=axis)
    return np.asarray(middle.mean(axis=axis))


def estimate_iqm(scores: ByTask, num_draws: int = NUM_DRAWS) -> Estimate:
    """Return the interquartile mean over seeds and tasks with its stratified bootstrap interval."""
    given = _checked(scores)
    value = interquartile_mean(np.concatenate(given))
    draws_RM = np.concatenate(_draw(given, np.random.default_rng(SEED), num_draws), axis=1)
    return _estimate(value, given, lambda: interquartile_mean(draws_RM, axis=1))


def probability_of_improvement(
    first: ByTask, second: ByTask, num_draws: int = NUM_DRAWS
) -> Estimate:
    """Return the probability that a seed of the first has a higher score than one of the second, on
    a task chosen at random, with its interval. Equal scores count as half."""
    xs, ys = _checked(first), _checked(second)
    if len(xs) != len(ys):
        raise ValueError(f"{len(xs)} tasks against {len(ys)}: both need the same tasks")
    value = np.mean([_share_above(x, y) for x, y in zip(xs, ys, strict=True)], axis=0)
    rng = np.random.default_rng(SEED)
    drawn = zip(_draw(xs, rng, num_draws), _draw(ys, rng, num_draws), strict=True)
    shares = [_share_above(np.moveaxis(x, 1, 0), np.moveaxis(y, 1, 0)) for x, y in drawn]
    return _estimate(np.asarray(value), [*xs, *ys], lambda: np.mean(shares, axis=0))


def _share_above(x_N: Array, y_K: Array) -> Array:
    """Return P(x > y) + P(x = y) / 2 over all pairs: Mann and Whitney's U over their number."""
    x, y = x_N[:, None], y_K[None, :]
    return np.asarray(((x > y) + 0.5 * (x == y)).mean(axis=(0, 1)))


def _checked(scores: ByTask) -> list[Array]:
    by_task = [np.asarray(of_task, dtype=np.float64) for of_task in scores]
    if not by_task or any(of_task.ndim == 0 or not len(of_task) for of_task in by_task):
        raise ValueError("scores need at least one task, and every task at least one seed")
    return by_task


def _draw(by_task: Sequence[Array], rng: np.random.Generator, num_draws: int) -> list[Array]:
    """Return [R, N] of every task: as many of its seeds, with replacement, for each draw."""
    return [
        of_task[rng.integers(len(of_task), size=(num_draws, len(of_task)))] for of_task in by_task
    ]


def _estimate(value: Array, by_task: Sequence[Array], drawn: Callable[[], Array]) -> Estimate:
    if all(len(of_task) == 1 for of_task in by_task):
        return Estimate(value, None, None)
    rest = 50 * (1 - CONFIDENCE)
    # No interpolation: between two scores that are infinite, such as times to a target that was not
    # reached, there is no middle.
    low, high = np.percentile(drawn(), [rest, 100 - rest], axis=0, method="inverted_cdf")
    return Estimate(value, low, high)
