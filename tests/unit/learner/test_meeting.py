"""Learners that make updates together: they begin, cut short and end versions together."""

import numpy as np
import pytest
import torch

from tests.fakes.ranks import LONG_S, counted_ranks, on_threads
from tests.fakes.scripted import PAYLOAD_BYTES, gauge_row
from tianji.algorithms.interface import Minibatch
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.inproc import InprocBoard
from tianji.errors import ReduceBroken
from tianji.learner.joined import JoinedLearner
from tianji.learner.meeting import LOOK_S, MEET_S, Meeting, check_same
from tianji.types import Batch

UPDATES = 6


class Update:
    """Every update adds the sum of the ranks' numbers to its parameter."""

    def __init__(self, rank):
        self.rank, self.value = rank, 0.0
        self.gradient = torch.zeros(1)
        self.progress = []

    def minibatch_steps(self, batch):
        return 1000

    def minibatches(self, batch, progress):
        self.progress.append(progress)
        for _ in range(UPDATES):
            yield Minibatch(self._differentiate, self._step, 10 + self.rank)

    def _differentiate(self):
        return self.gradient.fill_(1.0 + self.rank)

    def _step(self):
        self.value += float(self.gradient)

    def metrics(self):
        return {"value": self.value}


class Batches:
    """A list; None stands for a batch that is not there yet."""

    def __init__(self, given):
        self.left, self.finished = list(given), []

    def take(self):
        return self.left.pop(0) if self.left else None

    def finish(self, batch, version, priorities=None):
        self.finished.append((batch, version))


class Rank:
    """A learner and its meeting, on a clock that stands still unless a test moves it."""

    def __init__(self, peers, given, env_steps=0):
        self.peers, self.clock_ns = peers, 0
        self.meeting = Meeting(peers, lambda: self.clock_ns)
        self.meeting.ask(lambda: env_steps, lambda: self.is_save_due, lambda steps: steps / 1000)
        self.is_save_due = False
        self.update, self.batches = Update(peers.rank), Batches(given)
        self.gauges = gauge_row()
        self.learner = JoinedLearner(
            self.meeting,
            self.update,
            self.batches,
            InprocBoard(PAYLOAD_BYTES),
            lambda payload: payload.view(np.int64).fill(0),
            self.gauges,
        )

    def run(self, num_versions, most=1000):
        """Tick until so many versions are made; a tick without work moves the clock on."""
        for _ in range(most):
            if self.learner.version == num_versions:
                return
            if not self.learner.tick():
                self.clock_ns += int(0.3 * MEET_S * 1e9)
        raise AssertionError("no version was made")


def batch(num_steps=20):
    return Batch({}, (), num_items=1, num_steps=num_steps, unique_steps=num_steps)


def make_ranks(*given, **values):
    peers = counted_ranks(len(given))
    return [
        Rank(end, batches, **{name: each[end.rank] for name, each in values.items()})
        for end, batches in zip(peers, given, strict=True)
    ]


def run_all(ranks, num_versions):
    on_threads(
        [lambda rank=rank: rank.run(num_versions) for rank in ranks], [r.peers for r in ranks]
    )


def test_the_gradients_of_all_are_added_up_before_each_step():
    ranks = make_ranks([batch(), batch()], [batch(), batch()], [batch(), batch()])
    run_all(ranks, 2)
    for rank in ranks:
        assert rank.update.value == 2 * UPDATES * (1 + 2 + 3)
        assert rank.learner.metrics == {"value": rank.update.value}
        assert rank.gauges[Gauge.UPDATES] == 2 * UPDATES
        assert rank.gauges[Gauge.STEPS] == 2 * UPDATES * (10 + rank.peers.rank)
        assert rank.peers.sizes == ranks[0].peers.sizes


def test_a_learner_without_a_batch_is_waited_for_and_no_version_is_begun_without_it():
    late = [None] * 9 + [batch()]
    ranks = make_ranks([batch()], late)
    run_all(ranks, 1)
    assert ranks[0].peers.sizes == ranks[1].peers.sizes
    assert ranks[0].peers.sizes[:3] == [14, 14, 14], "the late one came to say that it waits"
    assert [len(rank.batches.finished) for rank in ranks] == [1, 1]


def test_a_batch_that_waits_for_others_is_not_taken_twice():
    first, second = batch(1), batch(2)
    ranks = make_ranks([first, second], [None] * 9 + [batch(3), None, batch(4)])
    run_all(ranks, 2)
    assert ranks[0].batches.finished == [(first, 1), (second, 2)]


def test_a_learner_comes_when_it_has_a_batch_or_has_not_come_for_long():
    (rank,) = make_ranks([])
    assert rank.meeting.is_due(is_ready=True)
    assert not rank.meeting.is_due(is_ready=False)
    rank.clock_ns = int(MEET_S * 1e9) + 1
    assert rank.meeting.is_due(is_ready=False)


def test_it_is_seen_to_wait_while_it_has_no_batch():
    (rank,) = make_ranks([])
    assert not rank.learner.tick()
    assert rank.gauges[Gauge.ACTIVITY] == Activity.WAITING


def test_schedules_are_the_same_on_all_ranks_and_steps_are_those_of_the_run():
    ranks = make_ranks([batch()], [batch()], env_steps=[300, 500])
    run_all(ranks, 1)
    assert [rank.update.progress for rank in ranks] == [[0.8], [0.8]]
    assert [rank.meeting.other_steps for rank in ranks] == [500, 300]
    assert all(rank.meeting.agreed.env_steps == 800 for rank in ranks)


def test_a_checkpoint_that_one_wants_is_one_of_all():
    ranks = make_ranks([batch()], [batch()])
    ranks[1].is_save_due = True
    run_all(ranks, 1)
    assert [rank.meeting.agreed.is_save_due for rank in ranks] == [True, True]


def test_a_version_that_one_cuts_short_is_cut_short_by_all():
    ranks = make_ranks([batch()], [batch()])
    ranks[1].learner.cut_short()
    run_all(ranks, 1)
    assert [rank.gauges[Gauge.UPDATES] for rank in ranks] == [1, 1]
    assert ranks[0].update.value == ranks[1].update.value
    assert ranks[0].peers.sizes == ranks[1].peers.sizes


def test_learners_look_at_each_other_only_now_and_then():
    clock = [0]
    meeting = Meeting(counted_ranks(1)[0], lambda: clock[0])
    meeting.come(0, True)
    looks = [len(meeting.peers.sizes)]
    for _ in range(UPDATES):
        meeting.cuts_short()
        clock[0] += int(LOOK_S * 1e9 / 3)
    looks.append(len(meeting.peers.sizes))
    meeting.come(UPDATES, True)
    assert meeting.agreed.updates_per_look == 3
    before = len(meeting.peers.sizes)
    for _ in range(UPDATES + 1):
        meeting.cuts_short()
    looks.append(len(meeting.peers.sizes) - before)
    assert looks == [1, UPDATES, 2], "before every further update at first, then every third"


def test_one_learner_that_ends_the_run_ends_it_for_all():
    ranks = make_ranks([batch(), batch()], [batch()])
    run_all(ranks, 1)

    def ends():
        ranks[1].learner.end_together("max_wall")

    def is_told():
        while ranks[0].meeting.agreed.because is None:
            ranks[0].learner.tick()

    on_threads([is_told, ends], [rank.peers for rank in ranks])
    assert [rank.meeting.agreed.because for rank in ranks] == ["max_wall"] * 2
    assert ranks[0].learner.is_between_versions
    before = len(ranks[0].peers.sizes)
    ranks[0].learner.tick()
    assert len(ranks[0].peers.sizes) == before, "nobody would answer any more"


def test_a_learner_that_dies_breaks_the_version_of_the_others():
    ranks = make_ranks([batch()], [batch()])

    def dies():
        ranks[1].learner.tick()
        ranks[1].peers.close()

    with pytest.raises(ReduceBroken):
        on_threads([lambda: ranks[0].run(1), dies])


def test_learners_with_different_parameters_do_not_begin():
    def check(peers, vector):
        with pytest.raises(ReduceBroken, match="different parameters"):
            check_same(peers, vector)

    vectors = [torch.tensor([1.0, 2.0]), torch.tensor([2.0, 1.0 + 1e-7])]
    ranks = counted_ranks(2, LONG_S)
    both = list(zip(ranks, vectors, strict=True))
    on_threads([lambda end=end, vector=vector: check(end, vector) for end, vector in both], ranks)
    same = [lambda end=end: check_same(end, vectors[0]) for end in ranks]
    on_threads(same, ranks)
