"""DQN in several ranks makes the updates of one learner with the batches of all of them."""

import numpy as np
import pytest
import torch

from tests.fakes.experience import Rig
from tests.fakes.ranks import counted_ranks, on_threads
from tianji.algorithms.dqn.update import ROW_MEANS
from tianji.channels.peers.interface import ALONE
from tianji.models.tensors import flatten
from tianji.types import Batch

BATCH, UPDATES = 16, 5


class Trained:
    """A learner on its own or as one of several ranks."""

    def __init__(self, peers, name="dqn", normalize=True, **settings):
        more = {"updates_per_version": UPDATES, "batch_size": BATCH, **settings}
        normal = {"observations": normalize, "rewards": False}
        self.rig = Rig(name, normalize=normal, settings=more)
        self.peers, self.update = peers, self.rig.update
        if peers is not ALONE:
            self.update.join(peers)

    def train(self, batch, cut_after=None):
        count = 0
        for minibatch in self.update.minibatches(batch, 0.3):
            self.peers.add(minibatch.gradient())
            minibatch.step()
            count += 1
            if count == cut_after:
                break
        metrics = dict(self.update.metrics())
        return count, metrics, self.update.priorities()

    def vector(self):
        return flatten(self.rig.model).vector_P

    def target(self):
        return self.update.state()["target/parameters"]


def make_batch(rig, seed, num_updates=UPDATES):
    arrays = {name: array[:num_updates] for name, array in rig.replay_batch(seed).arrays.items()}
    return batch_of(arrays)


def batch_of(arrays):
    count = arrays["reward"].size
    return Batch(arrays, (), count, count, keys=np.arange(count))


def whole_of(batches):
    """Transitions of the same update lie side by side."""
    names = set(batches[0].arrays) - {"largest_weight"}
    return batch_of({n: np.concatenate([b.arrays[n] for b in batches], 1) for n in names})


def make_all(num_ranks, **settings):
    ranks = [Trained(peers, **settings) for peers in counted_ranks(num_ranks)]
    return Trained(ALONE, **{**settings, "batch_size": BATCH * num_ranks}), ranks


def train_ranks(ranks, batches, cut_after=None):
    """Train all ranks; check that they have done the same, and return what each found."""
    programs = [
        lambda rank=rank, batch=batch: rank.train(batch, cut_after)
        for rank, batch in zip(ranks, batches, strict=True)
    ]
    found = on_threads(programs, [rank.peers for rank in ranks])
    for rank, (count, metrics, _) in zip(ranks, found, strict=True):
        assert torch.equal(rank.vector(), ranks[0].vector()), "ranks drift apart"
        assert torch.equal(rank.target(), ranks[0].target())
        assert (count, metrics) == found[0][:2]
        assert rank.peers.sizes == ranks[0].peers.sizes
    return found


def check_equal(whole, rank):
    for mine, expected in ((rank.vector(), whole.vector()), (rank.target(), whole.target())):
        torch.testing.assert_close(mine, expected, rtol=1e-4, atol=2e-5)
    state, expected = rank.update.state(), whole.update.state()
    for name in ("count", "mean", "m2"):
        key = f"observations/{name}"
        if key in expected:
            torch.testing.assert_close(state[key], expected[key], rtol=1e-10, atol=1e-10)
    assert state["target/updates"] == expected["target/updates"]


SETTINGS = {
    "plain": {},
    "soft target": {"target_tau": 0.05, "double": False, "loss": "mse"},
    "clipped": {"max_grad_norm": 0.01, "dueling": False},
    "apex": {"name": "apex", "sampling": "uniform"},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=list(SETTINGS))
@pytest.mark.parametrize("num_ranks", [2, 3])
def test_ranks_make_the_updates_of_one_learner(num_ranks, settings):
    whole, ranks = make_all(num_ranks, **{"target_period_updates": 4, **settings})
    for version in range(4):
        batches = [make_batch(rank.rig, 10 * version + i) for i, rank in enumerate(ranks)]
        found = train_ranks(ranks, batches)
        count, metrics, _ = whole.train(whole_of(batches))
        assert found[0][0] == count == UPDATES
        assert found[0][1] == pytest.approx(metrics, rel=1e-3, abs=1e-5)
        check_equal(whole, ranks[0])


def prioritized(rng, num_updates):
    """Return weights as stores with different totals give them, and what they were before each
    minibatch was divided by its largest one."""
    raw = rng.uniform(0.5, 40.0, (num_updates, BATCH)) ** 0.4
    largest = raw.max(1)
    return {"weight": (raw / largest[:, None]).astype(np.float32), "largest_weight": largest}, raw


@pytest.mark.parametrize("name", ["dqn", "apex"])
@pytest.mark.parametrize("num_ranks", [2, 3])
def test_weights_of_stores_with_other_totals_are_brought_to_one_scale(num_ranks, name):
    whole, ranks = make_all(num_ranks, name=name, sampling="prioritized")
    rng = np.random.default_rng(0)
    for version in range(3):
        batches, raws = [], []
        for i, rank in enumerate(ranks):
            batch = make_batch(rank.rig, 10 * version + i)
            weights, raw = prioritized(rng, UPDATES)
            batch.arrays.update(weights)
            batches.append(batch)
            raws.append(raw * (1.0 + i))
            batch.arrays["largest_weight"] = batch.arrays["largest_weight"] * (1.0 + i)
        one = whole_of(batches)
        raw = np.concatenate(raws, 1)
        one.arrays["weight"] = (raw / raw.max(1, keepdims=True)).astype(np.float32)
        found = train_ranks(ranks, batches)
        _, metrics, errors = whole.train(one)
        assert found[0][1] == pytest.approx(metrics, rel=1e-3, abs=1e-5)
        check_equal(whole, ranks[0])
        for rank, (_, _, priorities) in enumerate(found):
            mine = errors.reshape(UPDATES, num_ranks, BATCH)[:, rank]
            np.testing.assert_allclose(priorities, mine.reshape(-1), rtol=1e-3, atol=1e-5)


def test_a_rank_with_fewer_updates_takes_part_in_those_of_others():
    """The whole learner then makes updates of fewer transitions at the end."""
    whole, ranks = make_all(3, normalize=False, target_period_updates=3)
    for version in range(3):
        batches = [
            make_batch(rank.rig, 10 * version + i, num_updates)
            for i, (rank, num_updates) in enumerate(zip(ranks, (5, 2, 4), strict=True))
        ]
        found = train_ranks(ranks, batches)
        assert [count for count, _, _ in found] == [5, 5, 5]
        for first, last, present in ((0, 2, (0, 1, 2)), (2, 4, (0, 2)), (4, 5, (0,))):
            parts = [
                batch_of({n: a[first:last] for n, a in batches[i].arrays.items()}) for i in present
            ]
            whole.train(whole_of(parts))
        check_equal(whole, ranks[0])
        torch.testing.assert_close(
            ranks[0].update.state()["target/updates"], torch.tensor(5 * version + 5)
        )


def test_a_version_that_is_cut_short_has_the_metrics_of_the_whole():
    whole, ranks = make_all(2, normalize=False)
    batches = [make_batch(rank.rig, i, (5, 2)[i]) for i, rank in enumerate(ranks)]
    found = train_ranks(ranks, batches, cut_after=4)
    assert found[0][0] == 4
    assert [priorities for *_, priorities in found] == [None, None]
    parts = [
        [batch_of({n: a[first:last] for n, a in batches[i].arrays.items()}) for i in present]
        for first, last, present in ((0, 2, (0, 1)), (2, 4, (0,)))
    ]
    means = [whole.train(whole_of(part))[1] for part in parts]
    for name, each in found[0][1].items():
        if name in ROW_MEANS:
            expected = (2 * means[0][name] + means[1][name]) / 3  # 2 BATCH rows, then BATCH
            assert each == pytest.approx(expected, rel=1e-3, abs=1e-5), name
    assert found[0][1]["q_max"] == pytest.approx(max(mean["q_max"] for mean in means), rel=1e-3)
    norm = (means[0]["grad_norm"] + means[1]["grad_norm"]) / 2
    assert found[0][1]["grad_norm"] == pytest.approx(norm, rel=1e-3)


def test_one_rank_reduces_nothing():
    rig, alone = Trained(ALONE), Trained(ALONE)
    rig.update.join(ALONE)
    for version in range(2):
        batch = make_batch(rig.rig, version)
        assert rig.train(batch)[:2] == alone.train(batch)[:2]
    assert torch.equal(rig.vector(), alone.vector())
