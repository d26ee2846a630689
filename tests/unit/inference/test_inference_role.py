"""The server answers every request that waits, with the newest policy, and wakes who asked."""

import os

import pytest

from tests.fakes.scripted import gauge_row
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.requests import Answerer, Asker, RequestMemory
from tianji.inference.role import InferenceServer


class Board:
    """A policy that is one number: its version."""

    def __init__(self):
        self.newest = 0

    def version(self):
        return self.newest

    def latest(self, read):
        read(self.newest)
        return self.newest


class Lanes:
    """Answers with the policy that it has read."""

    uploaded_bytes = 12

    def __init__(self):
        self.policy, self.seen = None, []

    def read(self, policy):
        self.policy = policy

    def evaluate(self, requests, outputs_LNA):
        self.seen.append(requests)
        for lane, _, _ in requests:
            outputs_LNA[lane] = self.policy


class Rig:
    def __init__(self, fd):
        self.memory = RequestMemory.open(fd, num_lanes=3, num_envs=2, num_outputs=1)
        self.board, self.lanes, self.woken, self.gauges = Board(), Lanes(), [], gauge_row()
        self.server = InferenceServer(
            Answerer(self.memory), self.lanes, self.board, self.lanes.read,
            [lambda lane=lane: self.woken.append(lane) for lane in range(3)], self.gauges,
        )  # fmt: skip
        self.askers = [Asker(self.memory, lane, lambda: None) for lane in range(3)]


@pytest.fixture
def rig():
    fd = os.memfd_create("requests")
    yield Rig(fd)
    os.close(fd)


def test_without_a_request_it_waits(rig):
    assert not rig.server.tick()
    assert rig.gauges[Gauge.ACTIVITY] == Activity.WAITING
    assert rig.lanes.seen == []


def test_it_answers_all_that_wait_at_once(rig):
    rig.askers[0].ask(5, 1)
    rig.askers[2].ask(7, 3)
    assert rig.server.tick()
    assert rig.lanes.seen == [[(0, 5, 1), (2, 7, 3)]]
    assert rig.woken == [0, 2]
    assert [asker.is_answered() for asker in (rig.askers[0], rig.askers[2])] == [True, True]
    assert rig.gauges[Gauge.ACTIVITY] == Activity.INFERRING
    assert (rig.gauges[Gauge.ITEMS], rig.gauges[Gauge.UPLOADED_BYTES]) == (2, 12)
    assert not rig.server.tick()


def test_an_answer_says_which_version_made_it(rig):
    for version in (0, 4):
        rig.board.newest = version
        rig.askers[1].ask(0, 0)
        rig.server.tick()
        assert rig.askers[1].version == version
        assert rig.askers[1].outputs_NA.tolist() == [[version], [version]]
    assert rig.gauges[Gauge.VERSION] == 4
