"""The number of parameters, known before torch is loaded."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from tianji.algorithms.registry import load_algorithm
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.models.sizes import ImageShape, convolutions, image_shape, most_parameters

PICTURE = spaces.Box(0, 255, (84, 84, 4), np.uint8)
SMALL_PICTURE = spaces.Box(0, 255, (3, 10, 12), np.uint8)
COLOUR_STACK = spaces.Box(0, 255, (4, 40, 48, 3), np.uint8)
GREY_PICTURE = spaces.Box(0, 255, (40, 48), np.uint8)
NUMBERS = spaces.Box(-1, 1, (7,), np.float32)
CHOICES = spaces.Discrete(5)


@pytest.mark.parametrize("algorithm", ["ppo", "dqn", "rennala-nigt"])
@pytest.mark.parametrize(
    "observation",
    [
        *(NUMBERS, CHOICES, PICTURE, SMALL_PICTURE, COLOUR_STACK, GREY_PICTURE),
        spaces.Dict(a=NUMBERS, b=SMALL_PICTURE),
    ],
)
def test_it_is_a_close_upper_bound_of_what_is_built(algorithm, observation):
    found = Spaces(observation, CHOICES)
    config = RunConfig(algorithm=algorithm, model={"hidden": (48, 32)})
    model = load_algorithm(algorithm).build_model(found, config)
    actual = sum(parameter.numel() for parameter in model.parameters())
    assert actual <= most_parameters(found, config) <= 2.5 * actual


@pytest.mark.parametrize("side", [5, 8, 17, 35, 36, 84])
def test_the_sides_after_each_convolution_are_those_of_torch(side):
    images = torch.zeros(1, 3, side, side)
    for layer in convolutions((3, side, side)):
        images = torch.nn.Conv2d(*layer)(images)
        side = layer.out(side)
        assert images.shape[2:] == (side, side)


@pytest.mark.parametrize(
    ("shape", "axes", "channels", "sides"),
    [
        ((84, 84, 4), "HWC", 4, (84, 84)),
        ((4, 84, 84), "CHW", 4, (84, 84)),
        ((210, 160, 3), "HWC", 3, (210, 160)),
        ((3, 160, 210), "CHW", 3, (160, 210)),
        ((11, 11, 20), "HWC", 20, (11, 11)),
        ((20, 11, 11), "CHW", 20, (11, 11)),
        ((84, 83), "HW", 1, (84, 83)),
        ((4, 64, 60, 3), "KHWC", 12, (64, 60)),
        ((4, 3, 64, 60), "KCHW", 12, (64, 60)),
    ],
)
def test_the_axes_of_an_image_follow_from_their_lengths(shape, axes, channels, sides):
    assert image_shape(shape) == ImageShape(axes, channels, sides)
