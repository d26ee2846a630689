"""NCCL for learners that have a GPU each: one rank on one GPU."""

import os

import pytest
import torch

from tianji.channels.peers.cards import shared_cards
from tianji.channels.peers.gloo import GlooPeers
from tianji.channels.peers.interface import gathered, total
from tianji.channels.peers.nccl import NcclPeers, are_own, gpu_number, on_own_gpus

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
LONG_S = 60.0


@pytest.fixture
def peers():
    """One rank, which is alone on its GPU."""
    fd = os.memfd_create("card")
    made = on_own_gpus(GlooPeers(shared_cards(0, [fd]), LONG_S), "cuda:0")
    yield made
    made.close()
    os.close(fd)


def test_a_rank_with_a_gpu_of_its_own_uses_nccl(peers):
    assert isinstance(peers, NcclPeers)
    assert (peers.rank, peers.num_ranks) == (0, 1)
    assert not are_own([gpu_number("cuda:0"), gpu_number("cuda")]), "the same GPU"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("device", ["cuda:0", "cpu"])
def test_sums_of_one_rank_are_its_own_values(dtype, device, peers):
    values = torch.randn(100_000, dtype=dtype, generator=torch.Generator().manual_seed(3))
    given = values.to(device)
    for _ in range(3):
        peers.add(given)
    assert torch.equal(given.cpu(), values)
    assert total(peers, [2.0]) == [2.0] and gathered(peers, [5.0]) == [[5.0]]


def test_what_is_queued_after_a_sum_sees_it(peers):
    parameters = torch.zeros(10_000_000, device="cuda:0")
    for _ in range(5):
        gradient = torch.ones_like(parameters)
        peers.add(gradient)
        parameters += gradient
    assert parameters.unique().tolist() == [5.0]
