"""When gradients are due: by the law, in whole nanoseconds, and without errors that add up."""

import math

import pytest

from tianji.balance.given_times import Times, Timing, closing_s
from tianji.config.run import TimesConfig

SECOND = 10**9


def times(num_actors=20, **values):
    return Times(TimesConfig(**values), num_actors, num_parameters=16, seed=1)


def in_a_row(timing, count, version=0, start_ns=0):
    """When each of so many gradients is due that follow each other at once."""
    now_ns, found = start_ns, []
    for _ in range(count):
        timing.begin(version, now_ns, 0)
        now_ns = timing.due_ns(1)
        found.append(now_ns)
    return found


def test_a_gradient_is_due_after_the_time_of_its_actor():
    assert in_a_row(Timing(times(law="sqrt"), 3, "first"), 3) == [
        2 * SECOND,
        4 * SECOND,
        6 * SECOND,
    ]


def test_actors_that_are_done_at_the_same_time_by_the_law_are_done_in_the_same_nanosecond():
    laws = times(law="sqrt")
    for actor, other, count in ((1, 7, 2), (1, 17, 3), (2, 11, 2)):  # k sqrt(a) = sqrt(b)
        row = in_a_row(Timing(laws, actor, "first"), count)
        assert row[-1:] == in_a_row(Timing(laws, other, "first"), 1)


def test_the_kth_of_many_in_a_row_is_not_k_times_a_rounded_time():
    timing = Timing(times(law="sqrt"), 1, "every")
    due_ns = 0
    for version in range(0, 3000, 3):  # it goes on while versions pass
        timing.begin(version, due_ns, 0)
        due_ns = timing.due_ns(1)
    assert due_ns == round(1000 * math.sqrt(2) * SECOND)


def test_a_version_is_begun_by_all_at_the_same_time_also_by_who_closed_the_one_before():
    laws = times(law="sqrt")
    closer, other = Timing(laws, 1, "first"), Timing(laws, 7, "first")
    start_ns = in_a_row(closer, 2)[-1]
    row = in_a_row(closer, 2, version=1, start_ns=start_ns)  # 2 sqrt(2) = sqrt(8)
    assert row[-1:] == in_a_row(other, 1, version=1, start_ns=start_ns)


@pytest.mark.parametrize("law", ["random", "changing"])
def test_a_state_goes_on_where_it_was(law):
    laws = times(num_actors=2, law=law)
    moments = [0, *in_a_row(Timing(laws, 0, "first"), 60)]
    for done in (0, 1, 30):
        timing = Timing(laws, 0, "first")
        in_a_row(timing, done)
        for has_begun in (False, True):
            if has_begun:
                timing.begin(1, moments[done], 0)
            resumed = Timing(laws, 0, "first")
            resumed.load_state(timing.state(moments[done], 0, has_begun))
            resumed.begin(1, 7, since_ns=7)  # another clock
            took_ns = moments[done + 1] - moments[done]
            assert resumed.due_ns(1) - 7 == pytest.approx(took_ns, abs=1)


def test_after_a_pause_it_counts_from_there():
    timing = Timing(times(law="equal"), 0, "first")
    in_a_row(timing, 3)
    assert in_a_row(timing, 1, start_ns=10 * SECOND) == [11 * SECOND]


@pytest.mark.parametrize(("rule", "seconds"), [("barrier", 4), ("every", 4), ("first", 2)])
def test_messages_are_part_of_it_where_every_gradient_travels_by_itself(rule, seconds):
    timing = Timing(times(law="sqrt", network="sqrt"), 3, rule)
    assert in_a_row(timing, 1) == [seconds * SECOND]


@pytest.mark.parametrize("rule", ["first", "harmonic"])
def test_elsewhere_the_slowest_message_is_paid_once_when_the_round_is_closed(rule):
    laws = times(num_actors=9, network="sqrt")
    assert closing_s(laws, rule) == 3.0
    assert closing_s(laws, "barrier") == closing_s(laws, "every") == 0.0


def test_random_times_are_drawn_anew_for_each_gradient():
    laws = times(law="random")
    row = in_a_row(Timing(laws, 0, "first"), 3)
    drawn = [laws.compute_s(0, index, 0.0, 1) for index in range(3)]
    assert len(set(drawn)) == 3
    assert row == pytest.approx([sum(drawn[: count + 1]) * SECOND for count in range(3)], abs=3)


def test_times_that_change_look_at_how_long_the_run_has_lasted():
    timing = Timing(times(num_actors=9, law="changing"), 0, "first")
    timing.begin(0, 25 * SECOND, since_ns=5 * SECOND)
    assert timing.due_ns(1) == 28 * SECOND
    timing.begin(0, 25 * SECOND, since_ns=6 * SECOND)
    assert timing.due_ns(1) == 26 * SECOND


def test_times_per_step_are_known_when_the_steps_are():
    timing = Timing(times(law="equal", per="step"), 0, "first")
    timing.begin(0, SECOND, 0)
    assert timing.due_ns(7) == 8 * SECOND
