"""An actor's own replay memory: it is filled first, and gradients come from all that it holds."""

import numpy as np

from tests.fakes.replay import make_rings, with_place
from tests.fakes.scripted import scripted_layout
from tianji.algorithms.interface import OwnReplay
from tianji.buffer.stores.own_replay import ReplayedEstimator
from tianji.types import PLACE

ROWS, ENVS, GAMMA = 4, 2, 0.5


class Seen:
    """An estimator that keeps what it was given."""

    def __init__(self):
        self.samples, self.versions = [], []
        self.sum_P, self.count = np.zeros(1, np.float32), 0
        self.look_ahead = self.load = self.is_complete = None

    def begin(self, version):
        self.versions.append(version)

    def add(self, unroll, num_rows):
        self.samples.append(unroll)
        self.count += 1


class Rig:
    """Environment n observes (n, k, 0) after k steps, and step k has reward k."""

    def __init__(self, n_step=1, warmup_steps=1, batch_size=200, num_actors=1, capacity=100):
        self.repeated = n_step - 1
        layout = with_place(scripted_layout(ROWS + self.repeated, ENVS))
        self.seen = Seen()
        memory = OwnReplay(
            capacity_steps=capacity * ENVS, warmup_steps=warmup_steps, batch_size=batch_size,
            n_step=n_step,
        )  # fmt: skip
        rings = make_rings(layout, 1, capacity, n_step)
        self.estimator = ReplayedEstimator(self.seen, rings, memory, num_actors, GAMMA, seed=0)
        self.layout, self.made = layout, 0

    def add(self, terminated=()):
        """The next unroll, which repeats the rows that returns look ahead to."""
        memory = np.zeros(self.layout.slot_bytes, np.uint8)
        unroll = {name: array[0] for name, array in self.layout.arrays(memory, 1).items()}
        first = self.made - self.repeated
        for t in range(ROWS + self.repeated + 1):
            unroll["obs"][t, :, 0] = range(ENVS)
            unroll["obs"][t, :, 1] = first + t
        unroll["reward"][:] = np.arange(first, first + ROWS + self.repeated)[:, None]
        unroll["valid"][:] = np.arange(first, first + ROWS + self.repeated)[:, None] >= 0
        for row in terminated:
            unroll["terminated"][row] = True
        unroll[PLACE][:] = 0, self.made, ROWS
        self.made += ROWS
        self.estimator.add(unroll, ROWS + self.repeated)


def test_nothing_is_added_before_the_memory_holds_the_warm_up():
    rig = Rig(warmup_steps=2 * ROWS * ENVS)
    rig.add()
    assert rig.estimator.count == 0
    rig.add()
    assert rig.estimator.count == 1


def test_nothing_is_added_while_every_step_looks_ahead_to_one_that_is_not_made():
    rig = Rig(n_step=ROWS + 1)
    rig.add()
    assert rig.estimator.count == 0
    rig.add()
    assert rig.estimator.count == 1


def test_a_memory_that_gives_up_steps_early_comes_to_the_end_of_its_warm_up():
    rig = Rig(warmup_steps=3 * ROWS * ENVS, capacity=2 * ROWS)
    for _ in range(3):
        assert rig.estimator.count == 0
        rig.add()
    assert rig.estimator.count == 1


def test_actors_share_the_warm_up():
    rig = Rig(warmup_steps=2 * ROWS * ENVS, num_actors=2)
    rig.add()
    assert rig.estimator.count == 1


def test_samples_come_from_all_steps_and_belong_together():
    rig = Rig()
    for _ in range(3):
        rig.add()
    sample = rig.seen.samples[-1]
    before, after = sample["obs"], sample["next_obs"]
    assert len(before) == 200
    assert set(before[:, 1].astype(int)) == set(range(3 * ROWS))
    np.testing.assert_array_equal(before[:, 0], after[:, 0])
    np.testing.assert_array_equal(before[:, 1] + 1, after[:, 1])
    np.testing.assert_array_equal(sample["reward"], before[:, 1])
    assert (sample["discount"] == GAMMA).all()


def test_the_oldest_steps_are_given_up():
    rig = Rig(capacity=6)
    for _ in range(3):
        rig.add()
    assert rig.seen.samples[-1]["obs"][:, 1].min() == 6


def test_returns_reach_across_unrolls_and_end_with_an_episode():
    rig = Rig(n_step=2)
    rig.add()
    rig.add(terminated=[2])
    sample = rig.seen.samples[-1]
    k = sample["obs"][:, 1].astype(int)
    last = 5  # row 2 of the second unroll, whose first row repeats step 3
    two = k != last
    np.testing.assert_allclose(sample["reward"][two], (k + GAMMA * (k + 1))[two])
    np.testing.assert_allclose(sample["reward"][~two], last)
    expected = np.where((k == last) | (k == last - 1), 0.0, GAMMA**2)
    np.testing.assert_allclose(sample["discount"], expected)
    assert set(k) == set(range(2 * ROWS - 1)), "the last step looks ahead to one that is not made"


def test_the_same_seed_gives_the_same_samples():
    one, other = Rig(), Rig()
    for rig in (one, other):
        rig.add()
    for name in ("obs", "reward"):
        np.testing.assert_array_equal(*(rig.seen.samples[0][name] for rig in (one, other)))


def test_versions_reach_the_estimator():
    rig = Rig()
    rig.estimator.begin(7)
    assert rig.seen.versions == [7]
