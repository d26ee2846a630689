"""Coloured noise: standard normal at every step, and with the power spectrum that was asked for."""

import numpy as np
import pytest

from tianji.ops.noise import colored_noise

MANY = 4000


def noise(num_rows, color, seed=0):
    return colored_noise(np.random.default_rng(seed), (num_rows, MANY, 2), color)


@pytest.mark.parametrize("num_rows", [1, 2, 3, 16, 255, 256])
@pytest.mark.parametrize("color", [0.0, 0.5, 1.0, 2.0])
def test_every_value_alone_is_standard_normal(num_rows, color):
    drawn = noise(num_rows, color)
    assert drawn.shape == (num_rows, MANY, 2) and drawn.dtype == np.float32
    np.testing.assert_allclose(drawn.mean((1, 2)), 0.0, atol=0.06)
    np.testing.assert_allclose(drawn.std((1, 2)), 1.0, atol=0.05)
    assert np.mean(np.abs(drawn) < 1.0) == pytest.approx(0.683, abs=0.02)


@pytest.mark.parametrize("color", [0.5, 1.0, 2.0])
def test_power_falls_with_the_frequency_to_the_power_of_the_color(color):
    power = np.square(np.abs(np.fft.rfft(noise(256, color), axis=0))).mean((1, 2))[1:-1]
    frequency = np.fft.rfftfreq(256)[1:-1]
    slope = np.polyfit(np.log(frequency), np.log(power), 1)[0]
    assert slope == pytest.approx(-color, abs=0.02)


def test_without_a_color_the_draws_are_those_of_the_generator():
    plain = np.random.default_rng(0).standard_normal((16, MANY, 2), np.float32)
    np.testing.assert_array_equal(noise(16, 0.0), plain)


def test_columns_are_independent():
    drawn = noise(64, 2.0)
    assert abs(np.mean(drawn[..., 0] * drawn[..., 1])) < 0.05
