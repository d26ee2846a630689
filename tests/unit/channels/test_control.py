"""The control segment: gauges, orders and bells that every process sees the same way."""

import os

from tests.fakes.roles import ONE_ACTOR
from tianji.channels.gauges import GAUGE_WORDS, Gauge
from tianji.channels.memory import Segment
from tianji.channels.orders import ORDER_WORDS, Control, Order, Stop, control_bytes

WORKERS = ("actor-0", "learner")


def both():
    """The supervisor's view, and that of a worker that inherited the descriptor."""
    control = Control.create(ONE_ACTOR, WORKERS)
    other = Control(ONE_ACTOR, WORKERS, Segment.attach(os.dup(control.segment.fd)))
    for worker in WORKERS:
        other.bell(worker).arm()
    return control, other


def test_two_processes_see_the_same_orders_and_gauges():
    one, other = both()
    one.supervision.post("actor-0", Order.RESETS, 7)
    one.gauges.rows["learner"][Gauge.UPDATES] = 9
    assert other.supervision.rows["actor-0"][Order.RESETS] == 7
    assert other.gauges.rows["learner"][Gauge.UPDATES] == 9
    assert other.gauges.rows["buffer"].tolist() == [0] * GAUGE_WORDS


def test_there_is_a_bell_for_every_worker_not_for_every_role():
    one, other = both()
    one.bell("learner").ring()
    assert not other.bell("actor-0").wait(0.0)
    assert other.bell("learner").wait(0.0)


def test_orders_gauges_and_bells_do_not_overlap():
    control, _ = both()
    control.ring_all()
    for row in control.gauges.rows.values():
        for word in range(GAUGE_WORDS):
            row[word] = -1
    assert all(row.tolist() == [0] * ORDER_WORDS for row in control.supervision.rows.values())
    for row in control.supervision.rows.values():
        for word in range(ORDER_WORDS):
            row[word] = -1
    assert all(control.bell(worker).wait(0.0) for worker in WORKERS)
    assert all(row.tolist() == [-1] * GAUGE_WORDS for row in control.gauges.rows.values())
    assert control.segment.nbytes == control_bytes(len(ONE_ACTOR), len(WORKERS))


def test_a_stop_reaches_every_role_and_wakes_its_worker():
    one, other = both()
    one.stop(Stop.FINISH)
    assert [row[Order.STOP] for row in other.supervision.rows.values()] == [Stop.FINISH] * 3
    assert all(other.bell(worker).wait(0.0) for worker in WORKERS)


def test_a_stop_only_becomes_more_urgent():
    control, _ = both()
    control.stop(Stop.NOW)
    control.stop(Stop.FINISH)
    assert control.supervision.rows["learner"][Order.STOP] == Stop.NOW
