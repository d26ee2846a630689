"""A requested policy: an actor asks before each item, and the learner answers between versions."""

import os

import pytest

from tests.contracts.test_stream import NoBatches, shm_ends, stamp
from tianji.channels.board import ShmBoardReader, ShmBoardWriter
from tianji.channels.requested import AnsweringBatches, AskingSender, RequestedReader
from tianji.channels.requests import Answerer, Asker, RequestMemory


class Ends:
    """An actor and a learner on shared memory; `rings` says who was woken, in order."""

    def __init__(self):
        self.rings = []
        self.receiver, (lane,) = shm_ends(4, 1)
        self.board, self.requests = os.memfd_create("board"), os.memfd_create("requests")
        self.writer = ShmBoardWriter(self.board, 8)
        asker = Asker(self._memory(), 0, lambda: self.rings.append("learner"))
        self.policy = RequestedReader(ShmBoardReader(self.board), asker)
        self.sender = AskingSender(lane, self.policy)
        self.learner = self.new_learner()

    def _memory(self):
        return RequestMemory.open(self.requests, 1, num_envs=0, num_outputs=0)

    def new_learner(self):
        version = ShmBoardReader(self.board).version
        wake = [lambda: self.rings.append("actor")]
        return AnsweringBatches(NoBatches(), Answerer(self._memory()), version, wake)

    def post(self, version):
        self.writer.post(version, lambda payload: payload.fill(version))

    def read(self):
        seen = []
        version = self.policy.latest(lambda payload: seen.append(int(payload[0])))
        assert seen == [version]
        return version


@pytest.fixture
def ends():
    made = Ends()
    made.post(0)
    return made


def test_an_actor_without_a_slot_does_not_ask(ends):
    assert ends.sender.reserve() is None
    assert not ends.sender.is_waiting()
    assert ends.rings == []


def test_an_actor_with_a_slot_asks_once_and_waits_until_the_learner_is_between_versions(ends):
    ends.receiver.grant(0, 7)
    for _ in range(3):
        assert ends.sender.reserve() is None
        assert ends.sender.is_waiting()
    assert ends.rings == ["learner"]
    ends.post(1)
    assert ends.sender.reserve() is None, "a version that was posted is no answer"
    assert ends.learner.take() is None
    assert ends.rings == ["learner", "actor"]
    assert not ends.sender.is_waiting()
    assert ends.sender.reserve().round == 7
    assert ends.read() == 1


def test_an_item_is_made_with_one_version_and_the_next_one_asks_again(ends):
    ends.receiver.grant(0, 0, 2)
    ends.sender.reserve()
    ends.learner.take()
    grant = ends.sender.reserve()
    assert ends.read() == 0
    ends.post(1)
    assert ends.policy.version() == 0, "nothing newer was asked for"
    ends.sender.send(grant.slot, stamp(0, 0))
    assert ends.policy.version() == 1, "between two items it shows the latest"
    assert ends.sender.reserve() is None
    assert ends.sender.is_waiting()
    ends.learner.take()
    assert ends.sender.reserve().round == 1
    assert ends.policy.version() == 1


def test_an_answer_leads_to_the_newest_version_even_if_that_was_posted_later(ends):
    ends.receiver.grant(0, 0)
    ends.sender.reserve()
    ends.learner.take()
    ends.post(1)
    assert ends.sender.reserve() is not None
    assert ends.policy.version() == 1, "the buffer takes it for an item of the newest version"


def test_a_learner_that_takes_over_answers_the_requests_of_the_dead_one(ends):
    ends.receiver.grant(0, 0)
    ends.sender.reserve()
    ends.learner = ends.new_learner()
    assert ends.sender.is_waiting()
    ends.learner.take()
    assert not ends.sender.is_waiting()


def test_an_actor_whose_slots_are_void_waits_for_no_answer_and_asks_anew(ends):
    ends.receiver.grant(0, 0)
    ends.sender.reserve()
    ends.receiver.reset_lane(0)
    assert ends.sender.is_stale()
    ends.sender.attach()
    assert not ends.sender.is_waiting()
    assert ends.sender.reserve() is None
    ends.receiver.grant(0, 5)
    assert ends.sender.reserve() is None
    ends.learner.take()
    assert ends.sender.reserve().round == 5
    assert ends.rings == ["learner", "learner", "actor"]
