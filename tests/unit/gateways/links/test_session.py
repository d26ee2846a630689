"""The protocol of numbers and windows, without sockets."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tianji.gateways.links.session import Hello, Message, Session
from tianji.gateways.refusals import Refused


def make(max_messages=4, max_bytes=1000):
    return Session(max_messages, max_bytes)


def connect(connector, listener):
    connector.welcomed(listener.welcome(connector.hello()))


def message(number, nbytes=0, settled=None):
    return Message(0, str(number).encode(), bytes(nbytes), settled)


def test_the_window_closes_and_opens_with_acknowledgements():
    session, peer = make(max_messages=2), make()
    connect(session, peer)
    for number in range(2):
        assert session.has_room(1)
        session.send(message(number))
    assert not session.has_room(1)
    session.next()
    session.acknowledge(1)
    assert session.has_room(1)


def test_the_window_counts_bytes_but_lets_one_large_message_pass():
    session, peer = make(max_messages=9, max_bytes=100), make()
    connect(session, peer)
    assert session.has_room(5000)
    session.send(message(0, 5000))
    assert not session.has_room(1)


def test_what_was_not_acknowledged_is_sent_again_from_there():
    a, b = make(), make()
    connect(a, b)
    for number in range(3):
        a.send(message(number))
        a.next()
    assert b.is_new(0)
    b.receive()
    connect(a, b)
    assert a.next() == (1, message(1))
    assert not b.is_new(0)


def test_an_acknowledgement_of_what_was_not_sent_is_refused():
    session, peer = make(), make()
    connect(session, peer)
    session.send(message(0))
    with pytest.raises(Refused):
        session.acknowledge(1)


def test_a_gap_is_refused():
    with pytest.raises(Refused):
        make().is_new(1)


def test_a_message_is_settled_once_as_arrived_or_as_void():
    settled = []
    a, b = make(), make()
    connect(a, b)
    for number in range(3):
        a.send(message(number, settled=lambda ok, n=number: settled.append((n, ok))))
        a.next()
    a.acknowledge(1)
    connect(a, make())
    assert settled == [(0, True), (1, False), (2, False)]


def test_a_listener_that_came_back_from_the_dead_is_not_believed():
    a, zombie = make(), make()
    connect(a, zombie)
    a.send(message(0))
    a.next()
    zombie.receive()
    connect(a, make())  # another one took its place
    connect(a, zombie)
    assert (zombie.received, a.acked, a.sent) == (0, 0, 0)


def test_a_hello_with_a_count_that_cannot_be_is_refused_and_the_next_begins_anew():
    a, b = make(), make()
    connect(a, b)
    with pytest.raises(Refused):
        b.welcome(Hello(a.own, b.own, 7))
    connect(a, b)
    assert a.peer == b.own and b.peer == a.own


class Life:
    """What one end has sent to one life of the other, and what arrived there."""

    def __init__(self):
        self.sent, self.arrived = [], []


class ResumingEnds(RuleBasedStateMachine):
    """Two ends over connections that carry some frames and lose the rest, and restarts."""

    def __init__(self):
        super().__init__()
        self.count = 0
        self.ends = {"a": self.new_end("a"), "b": self.new_end("b")}
        self.is_connected = False
        self.wires = {"a": [], "b": []}  # frames on their way from each end
        self.heard = {"a": [], "b": []}  # what arrived at each end from the present peer's life
        self.said = {"a": [], "b": []}  # what each end sent to the present peer's life

    def new_end(self, name):
        def begin_anew():
            self.heard[name], self.said[name] = [], []

        return Session(5, 10_000, begin_anew)

    def cut(self):
        self.is_connected = False
        self.wires = {"a": [], "b": []}

    @rule(is_answer_lost=st.booleans())
    def connect(self, is_answer_lost):
        self.cut()
        a, b = self.ends["a"], self.ends["b"]
        answer = b.welcome(a.hello())
        if not is_answer_lost:
            a.welcomed(answer)
            self.is_connected = True

    @rule(name=st.sampled_from("ab"))
    def send(self, name):
        end = self.ends[name]
        if end.peer and end.has_room(3):
            self.count += 1
            end.send(message(self.count))
            self.said[name].append(self.count)

    @precondition(lambda self: self.is_connected)
    @rule(name=st.sampled_from("ab"))
    def write(self, name):
        end = self.ends[name]
        entry = end.next()
        self.wires[name].append((entry, end.tell()))

    @precondition(lambda self: self.is_connected)
    @rule(name=st.sampled_from("ab"), count=st.integers(1, 4))
    def carry(self, name, count):
        other = "b" if name == "a" else "a"
        end = self.ends[other]
        for _ in range(min(count, len(self.wires[name]))):
            entry, ack = self.wires[name].pop(0)
            end.acknowledge(ack)
            if entry is not None and end.is_new(entry[0]):
                self.heard[other].append(int(entry[1].note))
                end.receive()

    @rule()
    def lose(self):
        self.cut()

    @rule(name=st.sampled_from("ab"))
    def restart(self, name):
        self.cut()
        self.ends[name] = self.new_end(name)
        self.heard[name], self.said[name] = [], []

    @invariant()
    def memory_is_bounded(self):
        for end in self.ends.values():
            assert len(end.kept()) <= 5

    @invariant()
    def nothing_is_lost_doubled_or_reordered(self):
        if not self.is_connected:
            return
        for name, other in (("a", "b"), ("b", "a")):
            heard, said = self.heard[other], self.said[name]
            assert heard == said[: len(heard)]
            assert self.ends[name].acked <= len(heard)

    def teardown(self):
        """When connections hold, everything arrives."""
        self.connect(is_answer_lost=False)
        for name in "ab":
            for _ in range(6):
                self.write(name)
            self.carry(name, 100)
        assert self.heard["b"] == self.said["a"]
        assert self.heard["a"] == self.said["b"]


TestResumingEnds = ResumingEnds.TestCase
TestResumingEnds.settings = settings(stateful_step_count=60, deadline=None)
