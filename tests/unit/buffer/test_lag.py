"""Lag from a histogram: the same figures as from the list of all lags."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tianji.buffer.role import MOST, LagGauge


def gauge(lags):
    made = LagGauge()
    for lag in lags:
        made.add(lag)
    return made


@given(st.lists(st.integers(0, MOST), min_size=1, max_size=200))
def test_mean_p95_and_max_are_those_of_the_list(lags):
    summary = gauge(lags).summary()
    assert np.isclose(summary["mean"], np.mean(lags))
    assert summary["max"] == max(lags)
    assert summary["p95"] == np.percentile(lags, 95, method="inverted_cdf")


def test_p95_leaves_out_exactly_the_largest_twentieth():
    assert gauge([0] * 19 + [5]).summary()["p95"] == 0
    assert gauge([0] * 18 + [5] * 2).summary()["p95"] == 5


def test_before_anything_arrived_there_is_no_lag():
    assert LagGauge().summary() == {"mean": 0.0, "p95": 0, "max": 0}
    assert LagGauge().counts() == [0]


def test_a_lag_beyond_the_histogram_is_still_the_maximum():
    made = gauge([0, MOST + 10])
    assert made.summary()["max"] == MOST + 10
    assert made.histogram[MOST] == 1


def test_a_lag_below_zero_counts_as_none():
    assert gauge([-2]).counts() == [1]
    assert gauge([-2]).summary()["max"] == 0


def test_counts_end_with_the_largest_lag_that_was_seen():
    assert gauge([0, 0, 2]).counts() == [2, 0, 1]


def test_a_restored_gauge_goes_on():
    other = LagGauge()
    before = gauge([0, 3])
    other.load_state(before.state())
    before.add(9)
    other.add(1)
    assert other.counts() == [1, 1, 0, 1]
    assert other.summary()["max"] == 3
