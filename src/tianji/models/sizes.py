"""The number of parameters of a run's networks, without torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from gymnasium import spaces as gym_spaces

from tianji.envs.spaces import Leaf, observation_leaves
from tianji.models.networks.images import NUM_FEATURES, is_image, torso_parameters

if TYPE_CHECKING:
    from gymnasium import Space

    from tianji.config.run import RunConfig
    from tianji.envs.interface import Spaces

NUM_NETWORKS = 2
"""A policy and a value; some algorithms have only one of the two."""


def most_parameters(spaces: Spaces, config: RunConfig) -> int:
    """Return an upper bound of the network's parameters; 0 for a network of the user's own
    (model.factory), which only torch can count."""
    if config.model.factory is not None:
        return 0
    leaves = observation_leaves(spaces.observation)
    images = [leaf for leaf in leaves if is_image(leaf)]
    features = sum(_features(leaf) for leaf in leaves)
    stack = _dense((features, *config.model.hidden, 2 * _num_actions(spaces.action)))
    return NUM_NETWORKS * stack + sum(torso_parameters(leaf.shape) for leaf in images)


def _features(leaf: Leaf) -> int:
    if is_image(leaf):
        return NUM_FEATURES
    return _options(leaf.space) or math.prod(leaf.shape)


def _num_actions(space: Space[object]) -> int:
    return _options(space) or math.prod(space.shape or (1,))


def _options(space: Space[object]) -> int:
    """Return the one-hot size of a space of choices; 0 for other spaces."""
    if isinstance(space, gym_spaces.Discrete):
        return int(space.n)
    if isinstance(space, gym_spaces.MultiDiscrete):
        return int(space.nvec.sum())
    return 0


def _dense(widths: Sequence[int]) -> int:
    return sum((inner + 1) * outer for inner, outer in pairwise(widths))
