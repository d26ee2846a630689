"""What can be asked of the experiment, and that its slots suffice for what is asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tianji.bench import point as point_module
from tianji.bench.message import make_layout
from tianji.bench.point import MAX_ACTORS, MAX_BYTES, Point
from tianji.errors import UsageError

KB, MB = 1 << 10, 1 << 20

REFUSED = {
    "no size": (Point(0), "--size is 0. It must be 1 to 1073741824 bytes."),
    "a size below zero": (Point(-8), "--size is -8."),
    "a size beyond all memory": (Point(MAX_BYTES + 8), f"--size is {MAX_BYTES + 8}."),
    "no actor": (Point(64, 0), "--actors is 0. It must be 1 to 256."),
    "too many actors": (Point(64, 257), "--actors is 257."),
    "a sample time below zero": (Point(64, 1, -0.1), "--sample-time is -0.1. It must be 0 to 60"),
    "a long sample time": (Point(64, 1, 61.0), "--sample-time is 61.0."),
    "no number": (Point(64, 1, float("nan")), "--sample-time is nan."),
    "no messages": (Point(64, 1, 0.0, 0), "--messages is 0. It must be at least 1"),
    "an actor without a message": (Point(64, 3, 0.0, 2), "--messages is 2. It must be at least 3"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_run_is_refused_in_words(what):
    point, words = REFUSED[what]
    with pytest.raises(UsageError) as refused:
        point.check()
    assert words in str(refused.value)


def test_the_limits_themselves_can_be_run():
    Point(1, 1, 0.0, 1).check()
    Point(777_777).check()
    Point(MAX_BYTES // MAX_ACTORS, MAX_ACTORS, 60.0, MAX_ACTORS).check()


def test_what_does_not_fit_into_memory_is_refused_with_the_arithmetic(monkeypatch):
    monkeypatch.setattr(point_module, "memory_available_bytes", lambda: 16 << 30)
    Point(MAX_BYTES // 2, 1).check()
    with pytest.raises(UsageError, match=r"12 slots x 1024\.0 MiB = 12\.0 GiB.*16\.0 GiB.*free"):
        Point(MAX_BYTES, 1).check()


points = st.builds(Point, st.integers(1, MAX_BYTES), st.integers(1, 256))


@given(points)
def test_no_actor_ever_starves_and_a_store_is_kept(point):
    assert point.window >= 4, "an actor must be able to write while others are under way"
    assert point.num_kept >= 8
    assert point.num_kept + point.window * point.num_actors == point.num_slots


@given(points)
def test_what_an_actor_has_under_way_fits_into_a_cache_unless_that_is_too_little(point):
    under_way_bytes = point.window * point.size_bytes
    assert point.window == 4 or under_way_bytes <= 8 * MB / point.num_actors
    assert point.window <= 256


@given(points)
def test_some_messages_are_sent_before_the_clock_starts_and_none_is_without_one(point):
    assert point.num_actors <= point.num_warmup <= max(point.num_actors, point.num_messages // 10)


@pytest.mark.parametrize("size", [64 * KB, 512 * KB, 2 * MB])
def test_the_slots_fill_the_region_that_copying_is_measured_with(size):
    assert Point(size).num_slots * make_layout(size).slot_bytes == 64 * MB


def test_what_follows_by_hand():
    def follows(size, num_actors):
        point = Point(size, num_actors)
        return point.window, point.num_kept, point.num_warmup

    assert follows(16, 1) == (256, 1024, 1000)
    assert follows(512 * KB, 1) == (16, 112, 112)
    assert follows(512 * KB, 4) == (4, 112, 112)
    assert follows(8 * MB, 16) == (4, 8, 16)
