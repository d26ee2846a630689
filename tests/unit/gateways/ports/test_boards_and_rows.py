"""Policies, orders and gauges on their way to another host."""

import os

import numpy as np
import pytest

from tests.unit.gateways.hosts import ActorsHost, TwoHosts, rows
from tianji.channels.board import ShmBoardReader, ShmBoardWriter
from tianji.channels.gauges import GAUGE_WORDS, Gauge
from tianji.channels.layout import STANDARD_FIELDS, Layout
from tianji.channels.orders import ORDER_WORDS, Order, Poster
from tianji.gateways.clock import ClockOffset
from tianji.gateways.ports.boards import BoardSink, BoardSource
from tianji.gateways.ports.rows import GaugesSource
from tianji.gateways.refusals import Refused

LAYOUT = Layout(tuple(STANDARD_FIELDS), num_rows=2, num_envs=1)
AHEAD_NS = 30 * 10**9


@pytest.fixture
def hosts():
    made = TwoHosts(LAYOUT, num_slots=2, num_actors=2, ahead_ns=AHEAD_NS)
    made.settle()
    yield made
    made.close()


def fill(value):
    return lambda payload: payload.fill(value)


def read(reader):
    copy = np.zeros(1024, np.uint8)
    version = reader.latest(lambda payload: np.copyto(copy, payload))
    assert (copy == copy[0]).all()
    return version, copy[0]


def test_the_latest_policy_arrives_whole(hosts):
    for version in range(1, 6):
        hosts.b.policy.post(version, fill(version))
        hosts.settle()
        assert read(hosts.a.policy) == (version, version)


def test_a_version_crosses_once_and_versions_in_between_are_skipped(hosts):
    for version in range(1, 50):
        hosts.b.policy.post(version, fill(version))
    hosts.settle()
    hosts.settle()
    assert read(hosts.a.policy) == (49, 49)
    assert hosts.b.policy_out.num_forwarded == 1


class FullOutlet:
    """A link that takes everything and never confirms it."""

    clock = ClockOffset()

    def __init__(self):
        self.sent = []

    def has_room(self, nbytes):
        return True

    def send(self, note, body=b"", settled=None):
        self.sent.append((note, bytes(body), settled))


def test_while_versions_are_on_their_way_only_the_latest_waits():
    fd = os.memfd_create("board")
    writer, outlet = ShmBoardWriter(fd, 64), FullOutlet()
    source = BoardSource("policy", ShmBoardReader(fd), 64)
    source.open(outlet)
    for version in range(1, 10):
        writer.post(version, fill(version))
        assert source.forward() == (version <= 2)
    assert [body[0] for _, body, _ in outlet.sent] == [1, 2]
    outlet.sent[0][2](True)
    assert source.forward()
    assert outlet.sent[-1][1][0] == 9


def test_versions_never_fall():
    fd = os.memfd_create("board")
    sink, reader = BoardSink("policy", fd, 64), ShmBoardReader(fd)
    for version, shown in ((3, 3), (2, 3), (3, 3), (4, 4)):
        note = version.to_bytes(8, "big")
        sink.place(note, 64)[:] = bytes([version]) * 64
        sink.receive(note, None)
        assert reader.version() == shown
        sink.reset()


def test_a_policy_of_another_size_is_refused():
    sink = BoardSink("policy", os.memfd_create("board"), 128)
    sink.place(bytes(8), 64)
    with pytest.raises(Refused):
        sink.place(bytes(8), 128)


def test_orders_arrive_when_they_change_with_times_of_the_local_clock(hosts):
    poster = Poster(hosts.b.orders)
    opened_ns = hosts.a.clock() - AHEAD_NS
    poster.post(1, Order.HURRY, 17)
    poster.post(1, Order.OPENED_NS, opened_ns)
    hosts.turn_until(lambda: hosts.a.orders[1][Order.NUMBER] == 2)
    assert hosts.a.orders[1][Order.HURRY] == 17
    error_ns = hosts.a.link.clock.error_ns
    assert abs(hosts.a.orders[1][Order.OPENED_NS] - (opened_ns + AHEAD_NS)) <= error_ns
    assert hosts.a.orders[0][Order.OPENED_NS] == 0
    hosts.settle()
    sent = hosts.b.link.session.acked
    hosts.settle()
    assert hosts.b.link.session.acked == sent, "orders that did not change crossed again"


def test_a_new_peer_gets_all_orders_that_stand(hosts):
    Poster(hosts.b.orders).post(0, Order.STOP, 1)
    hosts.turn_until(lambda: hosts.a.orders[0][Order.STOP])
    hosts.a.gateway.close()
    hosts.a = ActorsHost(LAYOUT, 2, 2, hosts.b.address)
    hosts.turn_until(lambda: hosts.a.orders[0][Order.STOP])
    assert hosts.a.orders[1][Order.NUMBER] == 0


def test_gauges_arrive_with_times_of_the_local_clock(hosts):
    hosts.a.gauges[1][Gauge.STEPS] = 512
    hosts.a.gauges[1][Gauge.HEARTBEAT_NS] = now_ns = hosts.a.clock()
    hosts.turn_until(lambda: hosts.b.gauges[1][Gauge.HEARTBEAT_NS])
    assert hosts.b.gauges[1][Gauge.STEPS] == 512
    late_ns = abs(hosts.b.gauges[1][Gauge.HEARTBEAT_NS] - (now_ns - AHEAD_NS))
    assert late_ns <= hosts.b.link.clock.error_ns
    assert hosts.b.gauges[0][Gauge.HEARTBEAT_NS] == 0


def test_a_host_that_was_restarted_has_another_clock(hosts):
    hosts.a.gateway.close()
    hosts.a = ActorsHost(LAYOUT, 2, 2, hosts.b.address, ahead_ns=-AHEAD_NS)
    hosts.turn_until(lambda: hosts.b.lost)
    hosts.a.gauges[0][Gauge.HEARTBEAT_NS] = now_ns = hosts.a.clock()
    hosts.turn_until(lambda: hosts.b.gauges[0][Gauge.HEARTBEAT_NS])
    late_ns = abs(hosts.b.gauges[0][Gauge.HEARTBEAT_NS] - (now_ns + AHEAD_NS))
    assert late_ns <= hosts.b.link.clock.error_ns


def test_gauges_cross_a_few_times_a_second_however_often_the_gateway_turns():
    outlet, times = FullOutlet(), iter(range(0, 10**10, 10**6))
    gauges = rows(100, GAUGE_WORDS)
    source = GaugesSource("actors", gauges, lambda: next(times))
    source.open(outlet)
    for _ in range(1000):
        source.pump()
    assert len(outlet.sent) == 10 * 2  # two batches of rows
    gauges[7][Gauge.STARTED_VERSION] = 4
    assert source.pump() and not source.pump()  # the buffer must know what is in work
    assert len(outlet.sent) == 11 * 2
    assert len({note for note, *_ in outlet.sent}) == 2
    assert all(len(body) <= source.max_body_bytes for _, body, _ in outlet.sent)


def test_rows_beyond_the_last_are_refused(hosts):
    sink = hosts.b.link._ports[3]
    with pytest.raises(Refused):
        sink.place((2).to_bytes(4, "big"), 8 * GAUGE_WORDS)
    with pytest.raises(Refused):
        sink.place((0).to_bytes(4, "big"), 8 * ORDER_WORDS + 1)
