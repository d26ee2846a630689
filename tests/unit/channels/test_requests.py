"""Requests for inference: numbered, answered once, found again by whoever takes over."""

import os

import numpy as np
import pytest

from tianji.channels.requests import Answerer, Asker, RequestMemory


@pytest.fixture
def fd():
    fd = os.memfd_create("requests")
    yield fd
    os.close(fd)


def open_(fd):
    return RequestMemory.open(fd, num_lanes=3, num_envs=2, num_outputs=4)


def test_an_answer_reaches_the_actor_that_asked(fd):
    rings = []
    one, two = (Asker(open_(fd), lane, lambda lane=lane: rings.append(lane)) for lane in (0, 2))
    server = Answerer(open_(fd))
    assert server.waiting().tolist() == []
    two.ask(slot=7, row=3)
    assert rings == [2]
    assert server.waiting().tolist() == [2]
    assert server.requests(np.array([2])) == [(2, 7, 3)]
    assert not two.is_answered()
    server.outputs_LNA[2] = 5.0
    server.answer(np.array([2]), version=11)
    assert two.is_answered() and two.version == 11
    assert np.array_equal(two.outputs_NA, np.full((2, 4), 5.0))
    assert server.waiting().tolist() == []
    assert not one.outputs_NA.any()


def test_a_request_that_comes_during_an_answer_waits_for_the_next(fd):
    actor, server = Asker(open_(fd), 0, lambda: None), Answerer(open_(fd))
    actor.ask(0, 0)
    lanes = server.waiting()
    successor = Asker(open_(fd), 0, lambda: None)  # the actor died, another one took over
    successor.ask(1, 0)
    server.answer(lanes, version=1)
    assert not successor.is_answered(), "that answer was for its predecessor"
    assert server.waiting().tolist() == [0]
    assert server.requests(np.array([0])) == [(0, 1, 0)]


def test_a_new_server_finds_what_the_old_one_has_not_answered(fd):
    actor = Asker(open_(fd), 1, lambda: None)
    actor.ask(4, 2)
    Answerer(open_(fd)).waiting()  # it dies before it answers
    server = Answerer(open_(fd))
    lanes = server.waiting()
    assert server.requests(lanes) == [(1, 4, 2)]
    server.answer(lanes, version=3)
    assert actor.is_answered()
