"""The learner alone: batches come from a list, versions go to a board in this process."""

import numpy as np
import pytest

from tests.fakes.scripted import PAYLOAD_BYTES, ScriptedUpdate, gauge_row
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.inproc import InprocBoard
from tianji.devices.waits import WAITS
from tianji.errors import TrainingDiverged
from tianji.learner.role import Learner
from tianji.types import Batch

THREE_STEPS = ({}, {}, {"loss": 3.0})


class Batches:
    """Gives what it was told to give, and remembers what came back."""

    def __init__(self, count):
        self.left = [
            Batch({}, (), num_items=1, num_steps=20, unique_steps=13) for _ in range(count)
        ]
        self.finished = []

    def take(self):
        return self.left.pop(0) if self.left else None

    def finish(self, batch, version, priorities=None):
        self.finished.append((batch, version))


class Rig:
    def __init__(self, script=THREE_STEPS, num_batches=1):
        self.update = ScriptedUpdate(script)
        self.batches = Batches(num_batches)
        self.board = InprocBoard(PAYLOAD_BYTES)
        self.gauges = gauge_row()
        self.fraction = 0.25
        self.written = []
        self.learner = Learner(
            self.update, self.batches, self.board, self._write, lambda: self.fraction, self.gauges
        )

    def _write(self, payload):
        """The published policy is the number of optimiser steps it has had."""
        payload.view(np.int64).fill(self.gauges[Gauge.UPDATES])
        self.written.append(self.gauges[Gauge.UPDATES])


def test_without_a_batch_it_says_that_it_did_nothing():
    rig = Rig(num_batches=0)
    assert not rig.learner.tick()
    assert rig.gauges[Gauge.ACTIVITY] == Activity.WAITING
    assert rig.learner.is_between_versions


def test_time_in_which_a_gpu_still_updates_is_not_that_of_publishing(monkeypatch):
    rig, ticks = Rig(), iter([0, 100])
    rig.learner._now_ns = lambda: next(ticks)

    def write(_payload):
        monkeypatch.setattr(WAITS, "earlier_ns", WAITS.earlier_ns + 70)

    rig.learner._write_policy = write
    rig.learner.publish()
    assert rig.gauges[Gauge.PUBLISH_NS] == 30


def test_the_first_policy_is_published_before_any_batch():
    rig = Rig()
    rig.learner.publish()
    assert rig.board.version() == 0
    assert rig.written == [0]


def test_a_tick_is_one_optimiser_step_and_the_version_comes_after_the_last():
    rig = Rig()
    rig.learner.publish()
    for updates in (1, 2, 3):
        assert rig.learner.tick()
        assert rig.gauges[Gauge.UPDATES] == updates
        assert rig.gauges[Gauge.ACTIVITY] == Activity.UPDATING
        assert rig.board.version() == 0, "published before the last step"
        assert not rig.learner.is_between_versions
    assert rig.learner.tick()
    assert rig.board.version() == rig.learner.version == rig.gauges[Gauge.VERSION] == 1
    assert rig.written == [0, 3], "what is published has had every step of its batch"
    assert rig.learner.is_between_versions


def test_there_is_one_version_for_every_batch_and_each_is_finished_once():
    rig = Rig(num_batches=3)
    given = list(rig.batches.left)
    while rig.learner.tick():
        pass
    assert rig.batches.finished == [(given[0], 1), (given[1], 2), (given[2], 3)]
    assert rig.update.batches == given
    assert rig.written == [3, 6, 9]


def test_a_batch_is_finished_after_its_version_is_out():
    rig = Rig()
    seen = []
    rig.batches.finish = lambda batch, version, _: seen.append(rig.board.version())
    while rig.learner.tick():
        pass
    assert seen == [1]


def test_versions_go_on_from_where_a_restored_learner_was():
    rig = Rig()
    rig.learner.version = 41
    while rig.learner.tick():
        pass
    assert rig.board.version() == 42


def test_trained_and_unique_steps_are_counted_apart():
    rig = Rig(num_batches=2)
    while rig.learner.tick():
        pass
    assert rig.gauges[Gauge.STEPS] == 2 * 3 * 10, "ten steps of the batch in each optimiser step"
    assert rig.gauges[Gauge.UNIQUE_STEPS] == 2 * 13


def test_metrics_are_those_of_the_last_batch_that_had_some():
    rig = Rig(script=({"loss": 1.0}, {"loss": 2.0}, {}))
    while rig.learner.tick():
        pass
    assert rig.learner.metrics == {"loss": 2.0}


def test_schedules_get_the_progress_at_the_start_of_the_batch():
    rig = Rig(num_batches=2)
    while not rig.update.progress or not rig.learner.is_between_versions:
        rig.learner.tick()
    rig.fraction = 0.75
    while rig.learner.tick():
        pass
    assert rig.update.progress == [0.25, 0.75]


def test_a_loss_that_is_no_number_stops_the_learner_and_nothing_is_published():
    rig = Rig(script=({}, TrainingDiverged("the loss is nan")))
    rig.learner.publish()
    rig.learner.tick()
    with pytest.raises(TrainingDiverged, match="nan"):
        rig.learner.tick()
    assert rig.board.version() == 0
    assert rig.batches.finished == []


def test_a_version_that_is_cut_short_is_published_with_the_updates_it_had():
    rig = Rig(num_batches=2)
    rig.learner.tick()
    rig.learner.cut_short()
    assert rig.learner.tick()
    assert rig.learner.is_between_versions
    assert (rig.learner.version, rig.written) == (1, [1])
    for _ in range(4):
        rig.learner.tick()
    assert rig.written == [1, 4], "the next version has all of its updates"
