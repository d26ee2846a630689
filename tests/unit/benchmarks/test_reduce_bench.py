"""What waiting for the slowest learner costs at least."""

import pytest

from benchmarks.reduce.bench import mean_ms, slowest_ms
from benchmarks.reduce.rank import Turn


def turn(*version_ms):
    return Turn(sum(version_ms) / 10, 0.0, 0.0, 0.0, version_ms)  # ten updates


def test_each_version_takes_as_long_as_on_its_slowest_rank():
    ranks = [turn(10.0, 30.0), turn(20.0, 10.0)]
    assert mean_ms(ranks) == pytest.approx(3.5)
    assert slowest_ms(ranks) == pytest.approx((20.0 + 30.0) / 10)


def test_equal_ranks_lose_nothing():
    assert slowest_ms([turn(10.0, 12.0)] * 3) == pytest.approx(mean_ms([turn(10.0, 12.0)]))
