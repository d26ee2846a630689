"""Layouts of a policy's outputs and actions, by action space. Planning imports it, so no torch.

Discrete, MultiDiscrete and MultiBinary are K choices among n_k each, with one logit per choice, all
side by side. Box is a Gaussian with one mean per number; squashed into its bounds, it has one mean
and one spread per number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from tianji.envs.spaces import choice_sizes
from tianji.errors import UsageError
from tianji.types import Array, Field


@dataclass(frozen=True)
class Choices:
    """K categorical choices: Choices((3, 2), (2,)) for MultiDiscrete([3, 2]).

    shape: of one action as stored, () for Discrete. Choices are stored from 0; the world adds the
        space's `start`.
    """

    sizes: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def num_outputs(self) -> int:
        return sum(self.sizes)

    @property
    def field(self) -> Field:
        return Field("action", "int64", self.shape)


@dataclass(frozen=True)
class Continuous:
    """A vector of real numbers: Continuous((3,), low, high).

    low, high: flat float32, infinite where the space is not bounded
    """

    shape: tuple[int, ...]
    low: Array
    high: Array

    @property
    def num_outputs(self) -> int:
        return math.prod(self.shape)

    @property
    def field(self) -> Field:
        """Return the field of what was drawn, before it is cut to the bounds for the world."""
        return Field("action", "float32", self.shape)


@dataclass(frozen=True)
class Squashed(Continuous):
    """A vector of real numbers that are squashed into finite bounds."""

    @property
    def num_outputs(self) -> int:
        """Count all means, then all spreads."""
        return 2 * self.num_numbers

    @property
    def num_numbers(self) -> int:
        return math.prod(self.shape)

    @property
    def middle(self) -> Array:
        return _float32(0.5 * (self.low.astype(np.float64) + self.high))

    @property
    def half(self) -> Array:
        """Return half the width, rounded down so that middle +- half stays within the bounds."""
        middle = self.middle.astype(np.float64)
        largest = np.minimum(self.high - middle, middle - self.low)
        half = _float32(largest)
        return np.where(half > largest, np.nextafter(half, np.float32(0.0)), half)


def _float32(array: Array) -> Array:
    return array.astype(np.float32)


def squashed_layout(space: gym.Space[Any]) -> Choices | Squashed:
    """Return the layout of a space whose numbers are squashed into their bounds."""
    layout = action_layout(space)
    if isinstance(layout, Choices):
        return layout
    if not (np.isfinite(layout.low).all() and np.isfinite(layout.high).all()):
        raise UsageError(
            f"Action space {space} has no bounds, and this algorithm's policy squashes its actions "
            "into bounds. Give the space finite bounds (gymnasium.wrappers.RescaleAction, or an "
            "ActionWrapper of your own), or use ppo or impala."
        )
    return Squashed(layout.shape, layout.low, layout.high)


def action_layout(space: gym.Space[Any]) -> Choices | Continuous:
    """Return the layout of a space; UsageError where there is none."""
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        return Choices(choice_sizes(space), space.shape or ())
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        low, high = (bound.astype(np.float32).reshape(-1) for bound in (space.low, space.high))
        return Continuous(space.shape, low, high)
    raise UsageError(
        f"Action space {space} is not supported; Discrete, MultiDiscrete, MultiBinary and Box of "
        "floats are. Wrap the environment (gymnasium.ActionWrapper) so that it takes one of these."
    )
