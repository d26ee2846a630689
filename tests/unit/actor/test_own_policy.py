"""An actor that takes the learner's steps has the learner's parameters, whatever it missed."""

import numpy as np
import pytest
import torch

from tests.fakes.scripted import gauge_row
from tianji.actor.rank import OwnPolicy
from tianji.algorithms.gathered import GatheredUpdate
from tianji.algorithms.policy_gradient.update import Ascent
from tianji.algorithms.whole import WholeSnapshot
from tianji.channels.gauges import Gauge
from tianji.channels.inproc import InprocBoard
from tianji.channels.interface import Total
from tianji.models.tensors import Snapshot, flatten
from tianji.ops.nigt import Nigt, Pace, Point
from tianji.types import Batch

P = 12


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        theta_P = flatten(self).vector_P
        self.register_buffer("ahead", theta_P.detach().clone())
        self.register_buffer("direction", torch.zeros_like(theta_P))
        self.register_buffer("eta", torch.ones(1, dtype=torch.float64))


def build():
    """The same initial weights every time."""
    torch.manual_seed(0)
    model = Model()
    theta_P = flatten(model).vector_P
    point = Point(theta_P, theta_P.clone(), model.ahead, model.direction, model.eta)
    with torch.no_grad():
        pace = Pace(alpha=0.1, eta=0.2, schedule="decaying")
        return model, GatheredUpdate(Ascent(Nigt(point, pace)))


def weigh_means(count):
    """As Malenia does."""
    return 1.0 / count, 1.0


class Totals:
    def __init__(self):
        self.by_version = {}
        self.is_pending = False

    def is_under_way(self):
        return self.is_pending

    def total(self, version):
        return self.by_version.get(version)


class Rig:
    """A learner that publishes, and one actor."""

    def __init__(self):
        self.model, self.update = build()
        self.whole = WholeSnapshot(self.model, self.update)
        self.board = InprocBoard(self.whole.nbytes)
        self.version = 0
        self.board.post(0, self.whole.write_to)
        self.totals, self.row = Totals(), gauge_row()
        self.policy = self.join()
        self.acting, _ = build()

    def join(self):
        model, update = build()
        return OwnPolicy(model, update, self.board, self.totals, weigh_means, self.row)

    def step(self, reaches_actor=True):
        """The learner takes a step and publishes."""
        rng = np.random.default_rng(self.version)
        total = Total(rng.standard_normal(P).astype(np.float32), [2, 0, 1])
        arrays = {"sum": total.sum_P, "weight": np.array([2.0])}
        for minibatch in self.update.minibatches(Batch(arrays, (), 3, 0), 0.0):
            minibatch.gradient()
            minibatch.step()
        if reaches_actor:
            self.totals.by_version[self.version] = total
        self.version += 1
        self.board.post(self.version, self.whole.write_to)

    def read(self):
        version = self.policy.latest(Snapshot(self.acting).read_from)
        assert version == self.version
        for mine, theirs in zip(
            self.acting.state_dict().values(), self.model.state_dict().values(), strict=True
        ):
            assert torch.equal(mine, theirs)

    @property
    def num_steps(self):
        return self.row[Gauge.UPDATES]


def test_steps_that_it_takes_itself_lead_to_the_learners_parameters():
    rig = Rig()
    rig.read()
    for _ in range(5):
        rig.step()
        rig.read()
    assert rig.num_steps == 5


def test_nothing_is_read_from_the_board_but_the_first_version():
    rig = Rig()
    rig.read()
    rig.board.latest = pytest.fail
    for _ in range(3):
        rig.step()
        rig.read()


def test_a_total_that_it_did_not_get_is_made_up_for_by_the_board():
    rig = Rig()
    rig.read()
    rig.step(reaches_actor=False)
    rig.read()
    rig.step()
    rig.read()
    assert rig.num_steps == 1


def test_versions_that_it_slept_through_are_made_up_for_by_the_board():
    rig = Rig()
    rig.read()
    rig.step()
    rig.step()
    rig.read()
    assert rig.num_steps == 0


def test_one_who_comes_late_goes_on_with_steps_of_its_own():
    rig = Rig()
    rig.step()
    rig.step()
    rig.read()
    rig.step()
    rig.read()
    assert rig.num_steps == 1


def test_a_version_is_not_there_before_its_total_is():
    rig = Rig()
    rig.read()
    rig.step()
    rig.totals.is_pending = True
    assert rig.policy.version() == 0
    rig.totals.is_pending = False
    assert rig.policy.version() == 1


def test_reading_twice_takes_one_step():
    rig = Rig()
    rig.read()
    rig.step()
    rig.read()
    rig.read()
    assert rig.num_steps == 1


def test_who_only_evaluates_reads_the_beginning_of_what_is_published():
    rig = Rig()
    rig.step()
    rig.board.latest(Snapshot(rig.acting).read_beginning)
    assert torch.equal(rig.acting.ahead, rig.model.ahead)
    with pytest.raises(ValueError, match="snapshot of"):
        rig.board.latest(Snapshot(rig.acting).read_from)
