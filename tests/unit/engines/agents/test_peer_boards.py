"""Boards between groups on different hosts: what one posts, the other has."""

import os
import time

import pytest

from tests.fakes.ranks import LONG_S, on_threads
from tianji.channels.board import ShmBoardReader, ShmBoardWriter
from tianji.channels.peers.cards import shared_cards
from tianji.channels.peers.gloo import GlooPeers
from tianji.channels.peers.interface import total
from tianji.engines.agents.peers import PeerBoards, Post


@pytest.fixture
def hosts():
    """The boards of two hosts, as one process each would have them."""
    fds = [{name: os.memfd_create(name) for name in ("a", "b")} for _ in range(2)]
    yield fds
    for fd in (fd for host in fds for fd in host.values()):
        os.close(fd)


def post(writer, version, value):
    writer.post(version, lambda payload: payload.fill(value))


def read(fd):
    found = []
    version = ShmBoardReader(fd).latest(lambda payload: found.append(payload.copy()))
    return version, found[-1].tolist()


def test_the_latest_post_crosses_once(hosts):
    here, there = hosts
    learner, mine, other = ShmBoardWriter(here["a"], 3, "a"), PeerBoards(here), PeerBoards(there)
    assert mine.take_new(["a", "b"]) == []
    post(learner, 0, 1)
    post(learner, 1, 2)
    posts = mine.take_new(["a"])
    assert posts == [Post("a", 1, b"\x02\x02\x02")], "only the latest"
    assert mine.take_new(["a"]) == []
    other.put(posts)
    assert read(there["a"]) == (1, [2, 2, 2])
    assert other.take_new(["a"]) == [], "it does not go back"


def test_an_old_post_changes_nothing(hosts):
    _, there = hosts
    boards = PeerBoards(there)
    boards.put([Post("a", 4, b"\x04"), Post("a", 3, b"\x03")])
    assert read(there["a"]) == (4, [4])


def test_a_learner_goes_on_after_the_posts_that_were_put(hosts):
    """An agent on another host takes over: the numbers of its learner's posts must not fall."""
    _, there = hosts
    boards = PeerBoards(there)
    boards.put([Post("a", 8, b"\x08")])
    boards.leave("a")
    learner = ShmBoardWriter(there["a"], 1, "a")
    assert learner.version() == 8
    post(learner, 9, 9)
    assert [(p.version, p.data) for p in boards.take_new(["a"])] == [(9, b"\x09")]


def test_learners_on_different_hosts_meet_by_what_the_head_passes_on(hosts):
    ranks, met = ("a", "b"), []

    def learn(rank):
        cards = shared_cards(rank, [hosts[rank][name] for name in ranks])
        found = total(GlooPeers(cards, LONG_S), [rank + 1.0])
        met.append(rank)
        return found

    def pass_on():
        boards = [PeerBoards(fds) for fds in hosts]
        while len(met) < 2:
            for rank, other in ((0, 1), (1, 0)):
                boards[other].put(boards[rank].take_new([ranks[rank]]))
            time.sleep(0.01)

    *found, _ = on_threads([lambda: learn(0), lambda: learn(1), pass_on])
    assert found == [[3.0], [3.0]]
