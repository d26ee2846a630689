"""Figures from durations: means of blocks, the median of those, and how sure it is."""

import pytest

from tianji.planning.measure.noise import figure_of, unevenness


def test_the_figure_of_equal_durations_is_their_sum_without_noise():
    figure = figure_of([0.002] * 640, per_piece=8)
    assert figure.median_s == pytest.approx(0.016)
    assert figure.noise == pytest.approx(0.0, abs=1e-9)
    assert figure.is_stable


def test_a_rare_slow_step_counts_by_its_share():
    durations = ([0.001] * 9 + [0.011]) * 64
    assert figure_of(durations, per_piece=10).median_s == pytest.approx(0.020)


def test_a_moment_in_which_the_machine_was_busy_elsewhere_is_forgiven():
    durations = [0.001] * 640
    durations[100:110] = [0.5] * 10
    assert figure_of(durations, per_piece=10).median_s == pytest.approx(0.010)


def test_less_than_one_piece_is_scaled_up():
    assert figure_of([0.25] * 3, per_piece=100).median_s == pytest.approx(25.0)
    assert not figure_of([0.25] * 3, per_piece=100).is_stable


def test_blocks_that_differ_are_not_stable():
    figure = figure_of([0.001] * 80 + [0.003] * 80, per_piece=10)
    assert figure.noise == pytest.approx(0.5)
    assert not figure.is_stable


def test_the_noise_of_a_median_shrinks_with_the_number_of_blocks():
    few = figure_of([1.0, 1.08, 1.0, 1.08], per_piece=1)
    many = figure_of([1.0, 1.08] * 8, per_piece=1)
    assert few.noise == pytest.approx(many.noise)
    assert many.is_stable
    assert not few.is_stable


def test_unevenness_is_the_slowest_hundredth_over_the_median():
    assert unevenness([0.001] * 97 + [0.02] * 3) == pytest.approx(20.0)
    assert unevenness([0.001] * 100) == pytest.approx(1.0)
    assert unevenness([]) == 1.0


def test_rare_sleeps_count_although_most_blocks_have_none():
    ticks = ([10e-6] * 999 + [0.2]) * 5
    assert figure_of(ticks, 32).median_s < 1e-3, "more than half of the blocks have no sleep"
    assert figure_of(ticks, 32, is_waiting=True).median_s == pytest.approx(32 * 2.1e-4, rel=0.01)
