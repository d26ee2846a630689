"""IMPALA in several ranks makes the updates of one learner with the batches of all of them."""

import dataclasses

import numpy as np
import pytest
import torch

from tests.fakes.experience import Rig
from tests.fakes.ranks import counted_ranks, on_threads
from tianji.algorithms.actor_critic.preprocessor import Preprocessor
from tianji.channels.peers.interface import ALONE
from tianji.models.tensors import flatten
from tianji.types import Batch, Stamp

ROWS, ENVS, PARTS = 8, 4, 2
MODEL = {"activation": "tanh"}


class Trained:
    """A learner on its own or as one of several ranks."""

    def __init__(self, peers, **settings):
        normalize = {"observations": True, "rewards": True}
        more = {"minibatches": PARTS, "learning_rate": 1e-3, **settings}
        self.rig = Rig("impala", normalize=normalize, settings=more, model=MODEL)
        self.peers, self.update = peers, self.rig.update
        if peers is not ALONE:
            self.update.join(peers)

    def train(self, batch):
        count = 0
        for minibatch in self.update.minibatches(batch, 0.3):
            self.peers.add(minibatch.gradient())
            minibatch.step()
            count += 1
        return count, dict(self.update.metrics())

    def vector(self):
        return flatten(self.rig.model).vector_P


def make_batch(rig, seed, actor, share_valid):
    arrays = rig.unroll(seed, ROWS, ENVS)
    arrays["valid"] &= np.random.default_rng(seed).random((ROWS, ENVS)) < share_valid
    return batch_of(arrays, [actor])


def batch_of(arrays, actors):
    stamps = tuple(Stamp(actor, 0, 0, 0, 1, 0, 0) for actor in actors)
    return Batch(arrays, stamps, len(actors), int(np.count_nonzero(arrays["valid"])))


def whole_of(batches):
    """Environments of the same part lie side by side: first the first parts of all ranks. Actors
    of two environments each stand for the two parts of one actor."""
    half = ENVS // PARTS
    pieces = [
        (batch.arrays, slice(part * half, (part + 1) * half), 100 * part + batch.stamps[0].actor)
        for part in range(PARTS)
        for batch in batches
    ]
    names = batches[0].arrays
    arrays = {n: np.concatenate([a[n][:, where] for a, where, _ in pieces], 1) for n in names}
    return batch_of(arrays, [actor for *_, actor in pieces])


@pytest.fixture(params=["rows", "padded"], autouse=True)
def shape(request, monkeypatch):
    """Batches of valid rows, as on a CPU, and of a fixed shape, as on a GPU, where nothing has a
    closed form: neither has GELU."""
    if request.param == "padded":
        monkeypatch.setitem(MODEL, "activation", "gelu")
        process = Preprocessor.process
        monkeypatch.setattr(
            Preprocessor,
            "process",
            lambda self, batch: dataclasses.replace(process(self, batch), is_padded=True),
        )


def train_all(whole, ranks, batches):
    programs = [
        lambda rank=rank, batch=batch: rank.train(batch)
        for rank, batch in zip(ranks, batches, strict=True)
    ]
    found = on_threads(programs, [rank.peers for rank in ranks])
    count, metrics = whole.train(whole_of(batches))
    for rank, each in zip(ranks, found, strict=True):
        assert torch.equal(rank.vector(), ranks[0].vector()), "ranks drift apart"
        assert each == found[0]
        assert rank.peers.sizes == ranks[0].peers.sizes
    assert found[0][0] == count
    assert found[0][1] == pytest.approx(metrics, rel=1e-3, abs=1e-5)
    torch.testing.assert_close(ranks[0].vector(), whole.vector(), rtol=1e-4, atol=2e-5)
    expected = whole.update.state()
    for name, tensor in ranks[0].update.state().items():
        if name.startswith(("observations/", "rewards/")) and "returns" not in name:
            torch.testing.assert_close(tensor, expected[name], rtol=1e-10, atol=1e-10)
    return count


@pytest.mark.parametrize("settings", [{}, {"optimizer": "rmsprop", "entropy": 0.05}])
@pytest.mark.parametrize("num_ranks", [2, 3])
def test_ranks_make_the_updates_of_one_learner(num_ranks, settings):
    if "optimizer" in settings:
        settings["optimizer_epsilon"] = 0.01
    ranks = [Trained(peers, **settings) for peers in counted_ranks(num_ranks)]
    whole = Trained(ALONE, **settings)
    for version in range(4):
        batches = [
            make_batch(rank.rig, 10 * version + i, i, (1.0, 0.7, 0.3)[i])
            for i, rank in enumerate(ranks)
        ]
        assert train_all(whole, ranks, batches) == PARTS


@pytest.mark.parametrize("missing", [slice(0, 2), slice(2, 4), slice(0, 4)])
def test_a_rank_without_valid_steps_takes_part_in_the_updates_of_others(missing):
    ranks, whole = [Trained(peers) for peers in counted_ranks(2)], Trained(ALONE)
    for version in range(2):
        batches = [make_batch(rank.rig, 10 * version + i, i, 1.0) for i, rank in enumerate(ranks)]
        batches[1].arrays["valid"][:, missing] = False
        assert train_all(whole, ranks, batches) == PARTS


def test_parts_without_valid_steps_on_any_rank_make_no_update():
    ranks, whole = [Trained(peers) for peers in counted_ranks(2)], Trained(ALONE)
    batches = [make_batch(rank.rig, i, i, 1.0) for i, rank in enumerate(ranks)]
    for batch in batches:
        batch.arrays["valid"][:, :2] = False
    assert train_all(whole, ranks, batches) == 1
    for batch in batches:
        batch.arrays["valid"][:] = False
    assert train_all(whole, ranks, batches) == 0
