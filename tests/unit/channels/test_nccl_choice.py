"""When learners use NCCL, and where its ranks find each other."""

import os
from types import SimpleNamespace

import pytest

from tests.fakes.ranks import LONG_S, on_threads
from tianji.channels.peers.cards import shared_cards
from tianji.channels.peers.gloo import GlooPeers
from tianji.channels.peers.nccl import NO_GPU, _open_store, are_own, on_own_gpus


@pytest.mark.parametrize(
    ("gpus", "is_chosen"),
    [([7], True), ([7, 8, 9], True), ([7, 8, 7], False), ([7, NO_GPU], False), ([NO_GPU], False)],
)
def test_nccl_is_for_ranks_that_all_have_a_gpu_of_their_own(gpus, is_chosen):
    assert are_own(gpus) is is_chosen


@pytest.fixture
def fds():
    made = [os.memfd_create("card") for _ in range(2)]
    yield made
    for fd in made:
        os.close(fd)


def test_ranks_without_a_gpu_all_keep_gloo(fds):
    def meet(rank):
        gloo = GlooPeers(shared_cards(rank, fds), LONG_S)
        return on_own_gpus(gloo, "cpu") is gloo

    assert on_threads([lambda: meet(0), lambda: meet(1)]) == [True, True]


def test_the_store_is_at_the_address_of_rank_0_and_the_others_find_it(fds):
    def open_at(rank):
        cards = shared_cards(rank, fds)
        name = cards.agree()
        gloo = SimpleNamespace(
            rank=rank, cards=cards, name=name, timeout_s=LONG_S, host="127.0.0.1"
        )
        store = _open_store(gloo)
        store.set(f"from-{rank}", str(rank))
        return store, store.get(f"from-{1 - rank}").decode()

    (server, one), (_, other) = on_threads([lambda: open_at(0), lambda: open_at(1)])
    assert (server.host, one, other) == ("127.0.0.1", "1", "0")
