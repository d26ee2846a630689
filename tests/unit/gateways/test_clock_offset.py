"""The offset between two clocks, from pings whose ways there and back differ."""

from hypothesis import given
from hypothesis import strategies as st

from tianji.gateways.clock import NUM_PINGS, ClockOffset

MS = 1_000_000


def ping(clock, offset_ns, at_ns, there_ns, back_ns, work_ns=0):
    """One ping to a peer whose clock is ahead by the offset."""
    t1 = at_ns + there_ns + offset_ns
    clock.add(at_ns, t1, t1 + work_ns, at_ns + there_ns + work_ns + back_ns)


def test_equal_ways_give_the_exact_offset():
    clock = ClockOffset()
    assert not clock.is_known
    ping(clock, 5_000 * MS, 100, 3 * MS, 3 * MS, work_ns=40 * MS)
    assert clock.offset_ns == 5_000 * MS
    assert clock.to_ours(7_000 * MS) == 2_000 * MS


def test_a_time_of_never_stays_never():
    clock = ClockOffset()
    ping(clock, 5_000 * MS, 100, 1, 1)
    assert clock.to_ours(0) == 0


@given(
    st.integers(-(10**15), 10**15),
    st.lists(
        st.tuples(st.integers(0, 50 * MS), st.integers(0, 50 * MS)), min_size=1, max_size=NUM_PINGS
    ),
)
def test_the_error_is_within_its_bound_whatever_the_ways(offset_ns, ways):
    clock = ClockOffset()
    for number, (there_ns, back_ns) in enumerate(ways):
        ping(clock, offset_ns, 10**16 + number * 100 * MS, there_ns, back_ns)
    assert abs(clock.offset_ns - offset_ns) <= clock.error_ns
    shortest = min(there + back for there, back in ways)
    drift = 2e-4 * NUM_PINGS * 100 * MS
    assert clock.error_ns <= shortest / 2 + drift + 2


def test_clocks_that_drift_apart_are_followed():
    clock = ClockOffset()
    for second in range(1000):
        drifted = second * 20_000  # 20 us a second
        ping(clock, drifted, second * 1000 * MS, 1 * MS, 1 * MS + (second % 7) * MS)
    assert abs(clock.offset_ns - 999 * 20_000) < 1 * MS


def test_an_answer_that_cannot_be_is_ignored():
    clock = ClockOffset()
    clock.add(100, 5, 4, 200)
    clock.add(100, 5, 500, 200)
    clock.add(100, 5, 6, 99)
    assert not clock.is_known
