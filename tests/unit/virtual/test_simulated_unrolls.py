"""A simulated actor of unrolls, tick by tick."""

from tianji.channels.gauges import Gauge
from tianji.channels.inproc import InprocStream
from tianji.channels.layout import STANDARD_FIELDS, Layout
from tianji.channels.orders import BufferRows
from tianji.costs.work import Work
from tianji.virtual.roles import ActorEnd, Pace, SimulatedUnrolls

LAYOUT = Layout(tuple(STANDARD_FIELDS), num_rows=1, num_envs=1)


def test_an_unroll_is_in_work_until_the_time_of_its_last_tick_is_over():
    stream = InprocStream(LAYOUT, num_slots=1, num_lanes=1)
    rows = BufferRows.private(1).actors[0]
    end = ActorEnd(0, stream.sender(0), version=lambda: 7, rows=rows, now_ns=lambda: 1)
    actor = SimulatedUnrolls(Pace(Work(1.0, 1.0, 1.0), 2, 4, can_be_short=True), end)
    assert actor.tick() is None
    assert rows.gauges[Gauge.STARTED_VERSION] == 0
    stream.grant(0, 0)
    for _ in range(2):
        assert actor.tick() is not None
        assert rows.gauges[Gauge.STARTED_VERSION] == 8
    assert actor.tick() is None
    assert rows.gauges[Gauge.STARTED_VERSION] == 0
    assert stream.take() is not None
