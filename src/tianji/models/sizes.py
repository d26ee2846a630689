"""What planning and checks know of a run's networks, without torch: images, sizes, settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import gymnasium as gym

from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.envs.spaces import Frames, Leaf, observation_leaves
from tianji.errors import UsageError

NUM_FEATURES = 512
SMALLEST_IMAGE = 5
"""Shorter sides than this are tables of numbers and not pictures."""
SMALLEST_IMAGE_WITHOUT_CHANNELS = 16
"""The same for two axes of bytes, which may also be a board."""
SMALLEST_NATURE_IMAGE = 36
"""Below this, strides of 4 and 2 leave nothing for the third convolution."""
DEFAULT_MEMORY = 64
"""Width of a memory in front of no hidden layers."""
MEMORY_GATES = {"none": 0, "gru": 3, "lstm": 4}
MEMORY_STATES = {"none": 0, "gru": 1, "lstm": 2}
"""Numbers of a state for each unit of the memory."""
NUM_NETWORKS = 2
"""A policy and a value; some algorithms have only one of the two."""


class Convolution(NamedTuple):
    """One layer: channels in and out, kernel, stride, padding."""

    channels: int
    filters: int
    kernel: int
    stride: int
    padding: int

    def out(self, side: int) -> int:
        """Return the side of the result for an image with this side."""
        return (side + 2 * self.padding - self.kernel) // self.stride + 1


class ImageShape(NamedTuple):
    """An image as convolutions see it: ImageShape("KHWC", channels=12, sides=(64, 64))."""

    axes: str
    """HW, CHW, HWC, KCHW or KHWC, as the space has them. K: frames of a stack, which become
    channels."""
    channels: int
    sides: tuple[int, int]


def image_shape(shape: tuple[int, ...]) -> ImageShape:
    """Return the axes of an image from their lengths.

    Two equal ones are the sides; otherwise the channels are fewer than pixels.
    """
    if len(shape) == 2:
        return ImageShape("HW", 1, (shape[0], shape[1]))
    *frames, first, middle, last = shape
    is_unclear = (first == middle) == (middle == last)
    if last < first if is_unclear else first == middle:
        axes, channels, sides = "HWC", last, (first, middle)
    else:
        axes, channels, sides = "CHW", first, (middle, last)
    return ImageShape("K" * len(frames) + axes, channels * math.prod(frames), sides)


def is_image(leaf: Leaf) -> bool:
    """Return whether a leaf is an image.

    It has three axes, channels first or last; or four, the first of which are the frames of a
    stack; or it is a table of bytes without channels that is large enough.
    """
    num_axes = len(leaf.shape)
    if not isinstance(leaf.space, gym.spaces.Box) or num_axes not in (2, 3, 4):
        return False
    if num_axes == 2:
        return leaf.dtype == "uint8" and min(leaf.shape) >= SMALLEST_IMAGE_WITHOUT_CHANNELS
    return min(image_shape(leaf.shape).sides) >= SMALLEST_IMAGE


def hidden_widths(spaces: Spaces, config: RunConfig) -> tuple[int, ...]:
    """Return the widths of the layers between features and outputs."""
    if config.model.hidden != "auto":
        return config.model.hidden
    only_images = all(is_image(leaf) for leaf in observation_leaves(spaces.seen))
    return () if only_images else (64, 64)


def memory_size(spaces: Spaces, config: RunConfig) -> int:
    """Return the width of the memory, if there is one."""
    if config.model.memory_size != "auto":
        return config.model.memory_size
    return next(reversed(hidden_widths(spaces, config)), DEFAULT_MEMORY)


def state_size(spaces: Spaces, config: RunConfig) -> int:
    """Return how many numbers the memory keeps for each environment; 0 without one."""
    return MEMORY_STATES[config.model.memory] * memory_size(spaces, config)


def reward_clip(spaces: Spaces, config: RunConfig) -> float | None:
    """Return the size to which rewards are clipped; None where they are not."""
    asked = config.normalize.clip_rewards
    if asked == "auto":
        return 1.0 if isinstance(spaces.observation, Frames) else None
    return asked


def convolutions(shape: tuple[int, ...]) -> tuple[Convolution, ...]:
    """Return the three layers for images of this shape."""
    _, channels, sides = image_shape(shape)
    if min(sides) >= SMALLEST_NATURE_IMAGE:
        kernels, strides, padding = (8, 4, 3), (4, 2, 1), 0
    else:
        kernels, strides, padding = (3, 3, 3), (2, 2, 1), 1
    filters = (32, 64, 64)
    return tuple(
        Convolution(inner, outer, kernel, stride, padding)
        for inner, outer, kernel, stride in zip(
            (channels, *filters), filters, kernels, strides, strict=False
        )
    )


RESIDUAL_CHANNELS = (16, 32, 32)
"""Channels of the sections of a residual torso."""
SECTION_LAYERS = 5
"""Convolutions of a section: one before the pooling, four in residual blocks."""


def torso_outputs(shape: tuple[int, ...], torso: str) -> list[int]:
    """Return how many numbers each layer computes for one image; the first is the image itself."""
    sides = list(image_shape(shape).sides)
    found = [math.prod(shape)]
    if torso == "impala":
        for width in RESIDUAL_CHANNELS:
            found.append(math.prod(sides) * width)
            sides = [(side + 1) // 2 for side in sides]
            found += [math.prod(sides) * width] * SECTION_LAYERS
        return found
    for layer in convolutions(shape):
        sides = [layer.out(side) for side in sides]
        found.append(math.prod(sides) * layer.filters)
    return found


def torso_parameters(shape: tuple[int, ...]) -> int:
    """Count the parameters of the convolutions and of the dense layer behind them."""
    height, width = image_shape(shape).sides
    total = 0
    for layer in convolutions(shape):
        total += (layer.channels * layer.kernel**2 + 1) * layer.filters
        height, width = layer.out(height), layer.out(width)
    num_flat = height * width * layer.filters
    return total + (num_flat + 1) * NUM_FEATURES


def check_model(spaces: Spaces, config: RunConfig) -> None:
    """Raise UsageError for observations and settings that no network can work with."""
    observation_leaves(spaces.observation)
    if config.model.factory is not None and config.normalize.observations:
        raise UsageError(
            "normalize.observations works with TianJi's own networks, and model.factory is "
            f"'{config.model.factory}'. Set normalize.observations to false and normalise inside "
            "your network, or leave model.factory empty."
        )
    if config.model.factory is not None and config.model.memory != "none":
        raise UsageError(
            f"model.memory is '{config.model.memory}', which is a part of TianJi's own networks, "
            f"and model.factory is '{config.model.factory}'. Use --model.memory none, or leave "
            "model.factory empty."
        )


def most_parameters(spaces: Spaces, config: RunConfig) -> int:
    """Return an upper bound of the network's parameters; 0 for a network of the user's own
    (model.factory), which only torch can count."""
    if config.model.factory is not None:
        return 0
    leaves = observation_leaves(spaces.seen)
    images = [leaf for leaf in leaves if is_image(leaf)]
    features, memory = sum(_features(leaf) for leaf in leaves), 0
    if gates := MEMORY_GATES[config.model.memory]:
        width = memory_size(spaces, config)
        features, memory = width, gates * width * (features + width + 2)
    stack = _dense((features, *hidden_widths(spaces, config), 2 * _num_actions(spaces.action)))
    torsos = sum(torso_parameters(leaf.shape) for leaf in images)
    return NUM_NETWORKS * stack + memory + torsos


def critic_parameters(spaces: Spaces, config: RunConfig, num_critics: int) -> int:
    """Count the parameters of Q functions of an observation and an action, behind one encoder."""
    leaves = observation_leaves(spaces.observation)
    torsos = sum(torso_parameters(leaf.shape) for leaf in leaves if is_image(leaf))
    features = sum(_features(leaf) for leaf in leaves) + _num_actions(spaces.action)
    return torsos + num_critics * _dense((features, *hidden_widths(spaces, config), 1))


def _features(leaf: Leaf) -> int:
    if is_image(leaf):
        return NUM_FEATURES
    return _options(leaf.space) or math.prod(leaf.shape)


def _num_actions(space: gym.Space[Any]) -> int:
    return _options(space) or math.prod(space.shape or (1,))


def _options(space: gym.Space[Any]) -> int:
    """Return the one-hot size of a space of choices; 0 for other spaces."""
    if isinstance(space, gym.spaces.Discrete):
        return int(space.n)
    if isinstance(space, gym.spaces.MultiDiscrete):
        return int(space.nvec.sum())
    return 0


def _dense(widths: Sequence[int]) -> int:
    return sum((inner + 1) * outer for inner, outer in pairwise(widths))
