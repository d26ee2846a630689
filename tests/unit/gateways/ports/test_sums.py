"""Sums of gradients on their way to another host: one total for each host, added up there."""

import os
import time

import numpy as np
import pytest

from tests.unit.gateways.ends import CLEAR, LONG_S
from tianji.channels.board import ShmBoardReader, ShmBoardWriter
from tianji.channels.contributions import (
    Contribution,
    ContributionReader,
    ContributionWriter,
    HostSums,
    contribution_bytes,
    wanted_bytes,
)
from tianji.gateways.gateway import Gateway
from tianji.gateways.ports.boards import BoardSink, BoardSource
from tianji.gateways.ports.sums import SumsSource
from tianji.gateways.refusals import Refused

MAX_BYTES = 1 << 20


def weigh_mean(count):
    return 1.0 / count, 1.0


class Hosts:
    """A learner's host, and one with the actors 3, 4, ... that adds up their sums."""

    def __init__(self, num_actors=2, num_parameters=4):
        self.actors = range(3, 3 + num_actors)
        self.size = num_parameters
        self.wanted, self.total, there = (os.memfd_create("board") for _ in range(3))
        self.fds = [os.memfd_create("sum") for _ in self.actors]
        self.rings = 0
        self.home, self.away = Gateway("home", CLEAR), Gateway("away", CLEAR)
        address = self.home.listen()
        source = BoardSource("wanted", ShmBoardReader(self.wanted), MAX_BYTES)
        sink = BoardSink("total", self.total, MAX_BYTES, self.ring)
        self.at_home = self.home.link("away", [source, sink])
        sums = ContributionReader([ShmBoardReader(fd) for fd in self.fds])
        self.source = SumsSource("total", ShmBoardReader(there), sums, weigh_mean, MAX_BYTES)
        ports = [BoardSink("wanted", there, MAX_BYTES), self.source]
        self.at_away = self.away.link("home", ports, address)
        self.writers = [self.open_writer(fd) for fd in self.fds]
        self.sums = self.open_sums()

    def open_writer(self, fd):
        writer = ShmBoardWriter(fd, contribution_bytes(self.size), "a sum")
        return ContributionWriter(writer, ShmBoardReader(fd))

    def open_sums(self):
        self.sums = None
        writer = ShmBoardWriter(self.wanted, wanted_bytes(len(self.actors)), "wanted")
        reader = ShmBoardReader(self.wanted)
        return HostSums(self.actors, writer, reader, ShmBoardReader(self.total))

    def ring(self):
        self.rings += 1

    def post(self, actor, version, count, sum_P):
        place = self.actors.index(actor)
        self.writers[place].post(Contribution(version, count), np.asarray(sum_P, np.float32))

    def turn_until(self, is_done):
        deadline_s = time.monotonic() + LONG_S
        while not is_done():
            assert time.monotonic() < deadline_s, "it never came to that"
            self.home.turn(0.0)
            self.away.turn(0.0)

    def answer(self, version, actors):
        """Ask, and return counts and total."""
        self.sums.ask(version, actors)
        self.turn_until(self.sums.has_answered)
        total_P = np.zeros(self.size)
        return self.sums.add_to(total_P), total_P.tolist()

    def close(self):
        self.home.close()
        self.away.close()


@pytest.fixture
def hosts():
    made = Hosts()
    yield made
    made.close()


def test_the_sums_of_a_host_are_added_up_there_and_counted(hosts):
    hosts.post(3, 7, 2, [2, 4, 6, 8])
    hosts.post(4, 7, 1, [1, 1, 1, 1])
    assert hosts.answer(7, [3, 4]) == ([2, 1], [2.0, 3.0, 4.0, 5.0])
    assert hosts.rings == 1, "the buffer sleeps until then"


def test_the_total_has_double_precision(hosts):
    hosts.post(3, 0, 1, [1, 0, 0, 0])
    hosts.post(4, 0, 1, [1e-9, 0, 0, 0])
    _, total = hosts.answer(0, [3, 4])
    assert total[0] == 1.0 + float(np.float32(1e-9))


def test_only_the_actors_that_are_named_are_in_it(hosts):
    hosts.post(3, 0, 1, [1, 1, 1, 1])
    hosts.post(4, 0, 1, [2, 2, 2, 2])
    assert hosts.answer(0, [0, 4]) == ([0, 1], [2.0] * 4)


def test_sums_of_other_versions_are_not_in_it(hosts):
    hosts.post(3, 0, 1, [1, 1, 1, 1])
    hosts.post(4, 1, 1, [2, 2, 2, 2])
    assert hosts.answer(1, [3, 4]) == ([0, 1], [2.0] * 4)


def test_a_question_for_the_same_version_is_answered_anew(hosts):
    hosts.post(3, 0, 1, [1, 1, 1, 1])
    hosts.answer(0, [3])
    hosts.post(3, 0, 2, [4, 4, 4, 4])
    assert hosts.answer(0, [3]) == ([2, 0], [2.0] * 4)


def test_a_learner_that_takes_over_does_not_take_an_old_answer_for_its_own(hosts):
    hosts.post(3, 0, 1, [1, 1, 1, 1])
    hosts.answer(0, [3])
    hosts.sums.ask(0, [3])  # and dies
    hosts.sums = hosts.open_sums()
    hosts.post(3, 5, 1, [9, 9, 9, 9])
    assert hosts.answer(5, [3]) == ([1, 0], [9.0] * 4)


def test_a_host_without_sums_says_nothing_until_it_has_some(hosts):
    hosts.sums.ask(0, [3])
    hosts.turn_until(lambda: hosts.source._answered == 0)
    assert not hosts.sums.has_answered(), "it was meant for another host"
    hosts.post(3, 1, 1, [5, 5, 5, 5])
    assert hosts.answer(1, [3]) == ([1, 0], [5.0] * 4)


@pytest.mark.parametrize("num_actors", [1, 20])
def test_what_crosses_for_a_round_is_one_total_whatever_the_number_of_actors(num_actors):
    size, rounds = 1000, 10
    hosts = Hosts(num_actors, size)
    for actor in hosts.actors:
        hosts.post(actor, 0, 1, np.ones(size))
    hosts.answer(0, hosts.actors)
    before = hosts.at_away.report().bytes_sent
    for _ in range(rounds):
        counts, _ = hosts.answer(0, hosts.actors)
        assert counts == [1] * num_actors
    crossed = (hosts.at_away.report().bytes_sent - before) / rounds
    assert 8 * size < crossed < 8 * size + 8 * num_actors + 300  # frames, confirmations, pings
    hosts.close()


def test_nobody_sends_anything_to_the_one_that_answers(hosts):
    for call in (hosts.source.place, hosts.source.receive):
        with pytest.raises(Refused):
            call(b"", 0)
