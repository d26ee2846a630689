"""What is read off the tape of a disturbed run, with tapes whose answers are known."""

import pytest

from benchmarks.disturbances.tape import Sample, Tape, Told, judge

BEGIN_S, END_S = 20.0, 40.0


def tape_of(rate_at, lag_at=lambda _: 1, ratio_error=0.0, in_flight=0):
    """A tape of 40 seconds; rate_at: steps per second at a time."""
    tape, steps, lags = Tape(), 0.0, [0, 0, 0]
    for number in range(800):
        at_s = number * 0.05
        steps += 0.05 * rate_at(at_s)
        lags[lag_at(at_s)] += 1
        tape.samples.append(Sample(at_s, int(steps), number + in_flight, number, discarded=0))
        tape.told.append(Told(at_s, tuple(lags), ratio_error))
    return tape


def test_the_time_to_settle_is_when_the_rate_is_near_what_it_holds_later():
    answer = judge(tape_of(lambda at: 1000 if at < 20 else 200 if at < 23 else 500), BEGIN_S, END_S)
    assert answer.rate_before == pytest.approx(1000, rel=0.02)
    assert answer.rate_after == pytest.approx(500, rel=0.01)
    assert answer.settled_s == pytest.approx(3.0, abs=0.25)


def test_lag_must_settle_too():
    slow_lag = tape_of(lambda _: 500, lag_at=lambda at: 0 if 20 < at < 25 else 1)
    assert judge(slow_lag, BEGIN_S, END_S).settled_s == pytest.approx(5.0, abs=0.25)


def test_a_ratio_that_is_off_never_settles():
    assert judge(tape_of(lambda _: 500, ratio_error=0.06), BEGIN_S, END_S).settled_s is None


def test_overshoot_is_what_comes_after_it_was_there_once():
    answer = judge(tape_of(lambda at: 600 if 26 < at < 29 else 500), BEGIN_S, END_S)
    assert answer.overshoot == pytest.approx(0.2, abs=0.02)


def test_the_highest_lag_of_the_phase_is_told():
    tape = tape_of(lambda _: 500, lag_at=lambda at: 2 if 30 < at < 30.2 else 1)
    assert judge(tape, BEGIN_S, END_S).highest_lag == 2
    assert judge(tape, BEGIN_S, 29.0).highest_lag == 1


@pytest.mark.parametrize("in_flight", [0, 3])
def test_what_never_arrives_is_lost(in_flight):
    assert tape_of(lambda _: 500, in_flight=in_flight).lost() == in_flight
