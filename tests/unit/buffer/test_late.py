"""Unrolls in work that would be too old: asked for, waited for, and given up on."""

import pytest

from tianji.buffer.window import PATIENCE_NS, LateUnrolls
from tianji.channels.gauges import Gauge
from tianji.channels.orders import BufferRows, Order


@pytest.fixture
def clock():
    return [50_000_000_000]


def rows(*started):
    """Rows of actors whose unrolls began under these versions; None: nothing is in work."""
    made = BufferRows.private(len(started)).actors
    for actor, version in zip(made, started, strict=True):
        actor.gauges[Gauge.STARTED_VERSION] = 0 if version is None else version + 1
    return made


@pytest.mark.parametrize(
    ("max_lag", "version", "started", "is_late"),
    [
        (1, 4, 4, False),
        (1, 4, 3, True),
        (0, 4, 4, True),
        (3, 4, 2, False),
        (3, 4, 1, True),
        (1, 9, None, False),
    ],
)
def test_late_is_what_the_next_version_would_make_too_old(
    clock, max_lag, version, started, is_late
):
    actors = rows(started)
    assert LateUnrolls(max_lag, actors, lambda: clock[0]).holds_up(version, {0: 6}.get) is is_late
    assert actors[0].orders[Order.HURRY] == (7 if is_late else 0)


def test_patience_is_counted_from_the_first_time_it_waited(clock):
    unrolls = LateUnrolls(1, rows(0), lambda: clock[0])
    assert unrolls.holds_up(5, {0: 2}.get)
    clock[0] += PATIENCE_NS // 2
    assert unrolls.holds_up(5, {0: 2}.get)
    clock[0] += PATIENCE_NS // 2
    assert not unrolls.holds_up(5, {0: 2}.get)
    assert not unrolls.holds_up(6, {0: 2}.get), "it is waited for again"


def test_every_round_gets_its_own_patience(clock):
    unrolls = LateUnrolls(1, rows(0), lambda: clock[0])
    assert unrolls.holds_up(5, {0: 2}.get)
    clock[0] += PATIENCE_NS
    assert not unrolls.holds_up(5, {0: 2}.get)
    assert unrolls.holds_up(7, {0: 3}.get)


def test_one_that_is_waited_for_no_longer_does_not_hide_another(clock):
    for patient in (0, 1):
        unrolls = LateUnrolls(1, rows(0, 0), lambda: clock[0])
        unrolls.holds_up(5, {1 - patient: 2}.get)
        clock[0] += PATIENCE_NS
        assert unrolls.holds_up(6, {0: 2, 1: 2}.get), "the other one has just been asked"
        clock[0] += PATIENCE_NS
        assert not unrolls.holds_up(6, {0: 2, 1: 2}.get)
    assert not LateUnrolls(1, rows(0, 0)).holds_up(5, {}.get)


def test_the_version_goes_on_as_soon_as_the_last_one_it_waits_for_is_there(clock):
    unrolls = LateUnrolls(1, rows(0, 0), lambda: clock[0])
    in_work = {0: 2, 1: 7}
    assert unrolls.holds_up(5, in_work.get)
    in_work[1] = 8
    assert unrolls.holds_up(5, in_work.get)
    in_work[0] = 3
    assert not unrolls.holds_up(5, in_work.get)


def test_what_was_sent_and_is_not_yet_received_is_waited_for_no_longer(clock):
    (actor,) = rows(0)
    unrolls = LateUnrolls(1, [actor], lambda: clock[0])
    assert unrolls.holds_up(5, {0: 2}.get)
    actor.gauges[Gauge.STARTED_VERSION] = 0
    assert not unrolls.holds_up(5, {0: 2}.get)


def test_the_round_of_an_actor_that_died_is_waited_for_anew(clock):
    (actor,) = rows(0)
    unrolls = LateUnrolls(1, [actor], lambda: clock[0])
    unrolls.holds_up(5, {0: 2}.get)
    clock[0] += PATIENCE_NS
    unrolls.forget(0)
    assert actor.orders[Order.HURRY] == 0
    assert not unrolls.holds_up(6, {0: 2}.get), "what its gauges show is out of date"
    unrolls.came(0)
    assert unrolls.holds_up(7, {0: 2}.get)
