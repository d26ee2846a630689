"""Two hosts in one process: actors on one, a buffer on the other, gateways between them."""

import os
import time

from tests.unit.channels.ends import make_bell, make_bells
from tests.unit.gateways.ends import CLEAR
from tianji.channels.board import ShmBoardReader, ShmBoardWriter
from tianji.channels.gauges import GAUGE_WORDS
from tianji.channels.orders import ORDER_WORDS, Order
from tianji.channels.shm import ShmReceiver, ShmSender, StreamMemory
from tianji.gateways.gateway import Gateway
from tianji.gateways.ports.actors_elsewhere import ActorsElsewhere
from tianji.gateways.ports.boards import BoardSink, BoardSource
from tianji.gateways.ports.buffer_elsewhere import BufferElsewhere
from tianji.gateways.ports.rows import GaugesSink, GaugesSource, OrdersSink, OrdersSource

LONG_S = 60.0
MAX_POLICY_BYTES = 1 << 20


def rows(count, width):
    return [memoryview(bytearray(8 * width)).cast("q") for _ in range(count)]


class Shifted:
    """A clock that is ahead of the real one."""

    def __init__(self, ahead_ns=0):
        self.ahead_ns = ahead_ns

    def __call__(self):
        return time.monotonic_ns() + self.ahead_ns


class BufferHost:
    """The host of buffer and learner; it listens."""

    def __init__(self, layout, num_slots, num_actors, keys=CLEAR, limits=None, part=None):
        self.bell, self.buffer_bell = make_bells(2)
        self.memory = StreamMemory.create(layout, num_slots, num_actors)
        self.start_buffer(num_actors)
        self.board_fd = os.memfd_create("policy")
        self.policy = ShmBoardWriter(self.board_fd, 1024)
        self.orders, self.gauges = rows(num_actors, ORDER_WORDS), rows(num_actors, GAUGE_WORDS)
        self.lost = []
        self.num_actors = num_actors
        self.gateway = Gateway("buffer", keys, self.bell)
        self.address = self.gateway.listen()
        self.policy_out = BoardSource("policy", ShmBoardReader(self.board_fd), MAX_POLICY_BYTES)
        self.actors = ActorsElsewhere(
            "experience",
            self.memory,
            range(num_actors),
            self.buffer_bell,
            lambda actor, resets: self.lost.append((actor, resets)),
            self.policy_out,
            self.gauges,
            part,
        )
        ports = [
            self.policy_out,
            self.actors,
            OrdersSource("buffer", self.orders),
            GaugesSink("actors", self.gauges),
        ]
        self.link = self.gateway.link("actors", ports, limits=limits)

    def start_buffer(self, num_actors):
        self.receiver = None
        self.receiver = ShmReceiver(self.memory, [self.bell] * num_actors)


class ActorsHost:
    """The host of the actors; it connects."""

    def __init__(
        self, layout, num_slots, num_actors, address, keys=CLEAR, ahead_ns=0, limits=None, part=None
    ):
        self.bell = make_bell()
        self.memory = StreamMemory.create(layout, num_slots, num_actors)
        self.actor_bells = make_bells(num_actors)
        self.receiver = ShmReceiver(self.memory, self.actor_bells)
        self.supervision = rows(num_actors, ORDER_WORDS)
        self.orders, self.gauges = rows(num_actors, ORDER_WORDS), rows(num_actors, GAUGE_WORDS)
        self.board_fd = os.memfd_create("policy")
        self.policy = ShmBoardReader(self.board_fd)
        self.clock = Shifted(ahead_ns)
        self.gateway = Gateway("actors", keys, self.bell, now_ns=self.clock)
        self.buffer = BufferElsewhere(
            "experience", self.memory, self.receiver, range(num_actors), self.supervision, part
        )
        ports = [
            BoardSink("policy", self.board_fd, MAX_POLICY_BYTES),
            self.buffer,
            OrdersSink("buffer", self.orders),
            GaugesSource("actors", self.gauges, self.clock),
        ]
        self.link = self.gateway.link("buffer", ports, address, limits)
        self.senders = [self.new_sender(actor) for actor in range(num_actors)]

    def new_sender(self, actor):
        return ShmSender(self.memory, actor, self.bell)

    def replace_actor(self, actor):
        """As the supervisor does when an actor's process has died."""
        self.senders[actor] = None
        self.senders[actor] = self.new_sender(actor)
        row = self.supervision[actor]
        row[Order.RESETS] += 1
        row[Order.NUMBER] += 1


class TwoHosts:
    """Both hosts, turned by hand."""

    def __init__(
        self, layout, num_slots, num_actors, keys=CLEAR, ahead_ns=0, limits=None, part=None
    ):
        self.b = BufferHost(layout, num_slots, num_actors, keys, limits, part)
        address = self.b.address
        self.a = ActorsHost(layout, num_slots, num_actors, address, keys, ahead_ns, limits, part)

    def turn(self):
        self.a.gateway.turn(0.0)
        self.b.gateway.turn(0.0)

    def turn_until(self, is_done):
        deadline_s = time.monotonic() + LONG_S
        while not is_done():
            assert time.monotonic() < deadline_s, "it never came to that"
            self.turn()

    def settle(self):
        """Turn until all that can move has moved."""

        def is_connected():
            links = (self.a.link, self.b.link)
            return all(link.session.peer and link.clock.is_known for link in links)

        def is_quiet():
            return not any(host.link.session.kept() for host in (self.a, self.b))

        self.turn_until(is_connected)
        for _ in range(3):  # what arrives may be answered
            self.turn()
            self.turn_until(is_quiet)

    def close(self):
        self.a.gateway.close()
        self.b.gateway.close()


class SettledEnd:
    """An end of the stream for contract tests: before each call, everything has moved."""

    def __init__(self, hosts, end):
        self._hosts, self._end = hosts, end

    def __getattr__(self, name):
        attribute = getattr(self._end(), name)
        if not callable(attribute):
            return attribute

        def settled(*args):
            self._hosts.settle()
            return attribute(*args)

        return settled
