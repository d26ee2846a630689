"""PPO in several ranks makes the updates of one learner with the batches of all of them."""

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

ROWS, ENVS, MINIBATCH = 8, 4, 16
NORMALIZED = {"observations": True, "rewards": True}


def make_rig(num_ranks=1, **settings):
    more = {"epochs": 3, "minibatch_size": MINIBATCH * num_ranks, "learning_rate": 1e-3}
    return Rig("ppo", normalize=NORMALIZED, settings=more | settings)


def make_batch(rig, seed, actors, share_valid=1.0):
    """Lay the unrolls of some actors side by side; drop some steps."""
    unrolls = [rig.unroll(100 * seed + actor, ROWS, ENVS) for actor in actors]
    arrays = {name: np.concatenate([u[name] for u in unrolls], 1) for name in unrolls[0]}
    arrays["reward"] *= 3.0
    rng = np.random.default_rng(seed)
    arrays["valid"] &= rng.random(arrays["valid"].shape) < share_valid
    return batch_of(arrays, actors)


def batch_of(arrays, actors):
    num_steps = int(np.count_nonzero(arrays["valid"]))
    stamps = tuple(Stamp(actor, 0, 0, 0, 1, 0, 0) for actor in actors)
    return Batch(arrays, stamps, len(actors), num_steps)


def whole_of(batches):
    arrays = {
        name: np.concatenate([batch.arrays[name] for batch in batches], 1)
        for name in batches[0].arrays
    }
    return batch_of(arrays, [stamp.actor for batch in batches for stamp in batch.stamps])


class Recorded:
    """A rank's learner; notes the order of the rows of every epoch, and its minibatches."""

    def __init__(self, rig, peers):
        self.rig, self.peers = rig, peers
        self.update = rig.update
        if peers is not ALONE:
            self.update.join(peers)
        self.orders, self.sizes, self.num_parts = [], [], 0
        draw, divide = self.update._order, self.update._sizes

        def noted_order(num_rows, num_parts):
            self.orders.append(draw(num_rows, num_parts))
            return self.orders[-1]

        def noted_sizes(num_rows, num_parts):
            self.sizes, self.num_parts = divide(num_rows, num_parts), num_parts
            return self.sizes

        self.update._order, self.update._sizes = noted_order, noted_sizes

    def train(self, batch, cut_after=None):
        """Make the updates of a version, or only the first ones; return how many there were."""
        self.orders, count = [], 0
        for minibatch in self.update.minibatches(batch, 0.3):
            self.peers.add(minibatch.gradient())
            minibatch.step()
            count += 1
            if count == cut_after:
                break
        return count, dict(self.update.metrics())

    def vector(self):
        return flatten(self.rig.model).vector_P


def follow(whole, ranks, batches, keeps_all):
    """Let the whole learner take the rows in the order in which the ranks have taken theirs."""
    valid_TN = whole_of(batches).arrays["valid"] | keeps_all
    number_TN = np.cumsum(valid_TN).reshape(valid_TN.shape) - 1
    first, rows = 0, []
    for batch in batches:
        own_TN = batch.arrays["valid"] | keeps_all
        last = first + own_TN.shape[1]
        rows.append(torch.from_numpy(number_TN[:, first:last][own_TN]))
        first = last
    epochs = []
    for epoch in range(len(ranks[0].orders)):
        parts = [
            torch.split(own[rank.orders[epoch]], rank.sizes)
            for rank, own in zip(ranks, rows, strict=True)
        ]
        epochs.append(torch.cat([part for turn in zip(*parts, strict=True) for part in turn]))
    remaining = iter(epochs)
    whole.update._order = lambda num_rows, num_parts: (
        next(remaining) if num_parts > 1 else torch.arange(num_rows)  # it is not divided
    )
    whole.update._sizes = lambda num_rows, num_parts: [
        sum(sizes) for sizes in zip(*(rank.sizes for rank in ranks), strict=True)
    ]
    whole.update._num_parts = lambda batch: ranks[0].num_parts


def train_both(whole, ranks, batches, keeps_all=False, cut_after=None):
    """Train all on one version; check that they agree, and return the number of updates."""
    programs = [
        lambda rank=rank, batch=batch: rank.train(batch, cut_after)
        for rank, batch in zip(ranks, batches, strict=True)
    ]
    found = on_threads(programs, [rank.peers for rank in ranks])
    follow(whole, ranks, batches, keeps_all)
    num_updates, metrics = whole.train(whole_of(batches), cut_after)
    assert [count for count, _ in found] == [num_updates] * len(ranks)
    for rank, (_, rank_metrics) in zip(ranks, found, strict=True):
        assert torch.equal(rank.vector(), ranks[0].vector()), "ranks drift apart"
        assert rank_metrics == found[0][1]
    torch.testing.assert_close(ranks[0].vector(), whole.vector(), rtol=1e-4, atol=2e-5)
    assert found[0][1] == pytest.approx(metrics, rel=1e-3, abs=1e-5)
    return num_updates


def check_statistics(whole, ranks):
    expected = whole.update.state()
    for rank in ranks:
        state = rank.update.state()
        for name in ("count", "mean", "m2"):
            for kind in ("observations", "rewards"):
                key = f"{kind}/{name}"
                torch.testing.assert_close(state[key], expected[key], rtol=1e-10, atol=1e-10)
        buffers = zip(rank.rig.model.buffers(), ranks[0].rig.model.buffers(), strict=True)
        assert all(torch.equal(mine, first) for mine, first in buffers)


def make_all(num_ranks, **settings):
    ranks = [Recorded(make_rig(**settings), peers) for peers in counted_ranks(num_ranks)]
    return Recorded(make_rig(num_ranks, **settings), ALONE), ranks


@pytest.fixture(params=["rows", "padded"])
def is_padded(request, monkeypatch):
    """Batches of valid rows, as on a CPU, and of a fixed shape, as on a GPU."""
    if request.param == "padded":
        process = Preprocessor.process
        monkeypatch.setattr(
            Preprocessor,
            "process",
            lambda self, batch: dataclasses.replace(process(self, batch), is_padded=True),
        )
    return request.param == "padded"


SETTINGS = {
    "plain": {},
    "value clip": {"value_clip": 0.1, "entropy": 0.02, "decoupled": False},
    "advantages as they are": {"normalize_advantage": False, "max_grad_norm": 0.05},
    "one minibatch": {"minibatch_size": 4096},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=list(SETTINGS))
@pytest.mark.parametrize("num_ranks", [2, 3])
def test_ranks_make_the_updates_of_one_learner(num_ranks, settings, is_padded):
    whole, ranks = make_all(num_ranks, **settings)
    for version in range(4):
        batches = [
            make_batch(rank.rig, version, [10 * index], (1.0, 0.6, 0.3)[index])
            for index, rank in enumerate(ranks)
        ]
        num_updates = train_both(whole, ranks, batches, keeps_all=is_padded)
        assert num_updates == 3 * (1 if "minibatch_size" in settings else 2)
        check_statistics(whole, ranks)


@pytest.mark.parametrize("num_ranks", [2, 3])
def test_batches_of_different_sizes_make_the_same_number_of_updates(num_ranks, is_padded):
    whole, ranks = make_all(num_ranks)
    for version in range(3):
        batches = [make_batch(ranks[0].rig, version, [0, 1, 2], 0.9)]
        batches += [
            make_batch(rank.rig, version, [10 * index], 0.5)
            for index, rank in enumerate(ranks[1:], 1)
        ]
        assert train_both(whole, ranks, batches, keeps_all=is_padded) == 3 * 6
        check_statistics(whole, ranks)
    assert ranks[0].peers.sizes == ranks[1].peers.sizes


@pytest.mark.parametrize("num_valid", [0, 1, 3])
def test_a_rank_with_few_rows_or_none_takes_part_in_every_update(num_valid, is_padded):
    whole, ranks = make_all(2, minibatch_size=4)
    for version in range(3):
        batches = [make_batch(rank.rig, version, [7 * i]) for i, rank in enumerate(ranks)]
        valid = np.zeros(ROWS * ENVS, np.bool_)
        valid[: num_valid * 5 : 5] = True
        batches[1].arrays["valid"][:] = valid.reshape(ROWS, ENVS)
        assert train_both(whole, ranks, batches, keeps_all=is_padded) == 3 * 8
        check_statistics(whole, ranks)
    assert ranks[0].peers.sizes == ranks[1].peers.sizes


def test_batches_without_any_valid_row_make_no_update():
    whole, ranks = make_all(2)
    batches = [make_batch(rank.rig, 0, [0], share_valid=0.0) for rank in ranks]
    assert train_both(whole, ranks, batches) == 0
    assert ranks[0].peers.sizes == ranks[1].peers.sizes


@pytest.mark.parametrize("num_ranks", [2, 3])
def test_an_early_stop_is_decided_together(num_ranks, is_padded):
    """The KL of one rank alone would stop elsewhere: rank 0 has nearly all rows."""
    target_kl = {2: 1.5e-3, 3: 4e-3}[num_ranks]
    whole, ranks = make_all(num_ranks, epochs=6, target_kl=target_kl, learning_rate=2e-3)
    counts = []
    for version in range(6):
        batches = [
            make_batch(rank.rig, version, [10 * index], 1.0 if index == 0 else 0.2)
            for index, rank in enumerate(ranks)
        ]
        counts.append(train_both(whole, ranks, batches, keeps_all=is_padded))
    assert min(counts) < 6 * 2, "no version was stopped early"
    assert len(set(counts)) > 1, "all versions were stopped alike"
    assert all(rank.peers.sizes == ranks[0].peers.sizes for rank in ranks)


def test_a_version_that_is_cut_short_has_the_metrics_of_the_whole(is_padded):
    whole, ranks = make_all(2)
    batches = [make_batch(rank.rig, 3, [9 * i], 0.7) for i, rank in enumerate(ranks)]
    assert train_both(whole, ranks, batches, keeps_all=is_padded, cut_after=3) == 3
    assert ranks[0].peers.sizes == ranks[1].peers.sizes


def test_automatic_gradients_are_added_up_alike():
    """GELU has no closed form."""
    whole, ranks = (
        [Recorded(rig, peers) for rig, peers in zip(rigs, peers_of, strict=True)]
        for rigs, peers_of in (
            ([gelu_rig(2 * MINIBATCH)], [ALONE]),
            ([gelu_rig(MINIBATCH), gelu_rig(MINIBATCH)], counted_ranks(2)),
        )
    )
    for version in range(2):
        batches = [make_batch(rank.rig, version, [8 * i], 0.8) for i, rank in enumerate(ranks)]
        assert train_both(whole[0], ranks, batches) == 2 * 2


def gelu_rig(minibatch):
    settings = {"epochs": 2, "minibatch_size": minibatch}
    return Rig("ppo", normalize=NORMALIZED, settings=settings, model={"activation": "gelu"})


def test_one_rank_reduces_nothing():
    rig = make_rig()
    rig.update.join(ALONE)
    alone = make_rig()
    for version in range(2):
        batch = make_batch(rig, version, [0], 0.8)
        assert rig.train(batch) == alone.train(batch)
    assert torch.equal(rig.parameters(), alone.parameters())
