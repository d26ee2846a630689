"""Images among observations, and the sizes of their convolutions. Planning imports it: no torch."""

from __future__ import annotations

from typing import NamedTuple

from gymnasium import spaces

from tianji.envs.spaces import Leaf

NUM_FEATURES = 512
SMALLEST_IMAGE = 5
"""Shorter sides than this are tables of numbers and not pictures."""
SMALLEST_NATURE_IMAGE = 36
"""Below this, strides of 4 and 2 leave nothing for the third convolution."""


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


def is_channels_last(shape: tuple[int, ...]) -> bool:
    """Return whether the last axis is smaller than the first: images have few channels."""
    return shape[-1] < shape[0]


def is_image(leaf: Leaf) -> bool:
    """Return whether a leaf is an image: three axes, channels first or last."""
    if not isinstance(leaf.space, spaces.Box) or len(leaf.shape) != 3:
        return False
    sides = leaf.shape[:2] if is_channels_last(leaf.shape) else leaf.shape[1:]
    return min(sides) >= SMALLEST_IMAGE


def convolutions(shape: tuple[int, ...]) -> tuple[Convolution, ...]:
    """Return the three layers for images of this shape."""
    *sides, channels = shape if is_channels_last(shape) else (*shape[1:], shape[0])
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


def torso_parameters(shape: tuple[int, ...]) -> int:
    """Count the parameters of the convolutions and of the dense layer behind them."""
    sides = shape[:2] if is_channels_last(shape) else shape[1:]
    total = 0
    for layer in convolutions(shape):
        total += (layer.channels * layer.kernel**2 + 1) * layer.filters
        sides = tuple(layer.out(side) for side in sides)
    num_flat = sides[0] * sides[1] * layer.filters
    return total + (num_flat + 1) * NUM_FEATURES
