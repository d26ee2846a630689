"""Two trainings that make updates together: they save, stop and begin alike."""

import shutil
import threading

import pytest
import torch

from tests.fakes.ranks import counted_ranks, on_threads
from tests.unit.learner.test_training import STEPS, UPDATES, Rig, versions_saved
from tianji.channels.gauges import Gauge
from tianji.channels.orders import Stop
from tianji.checkpoint.load import list_checkpoints
from tianji.errors import ReduceBroken
from tianji.learner.joined import JoinedLearner
from tianji.learner.meeting import Meeting
from tianji.learner.training import Training


class Rank(Rig):
    """A training whose learner meets others."""

    def __init__(self, run_dir, peers, **values):
        super().__init__(run_dir, **values)
        self.peers = peers
        before, group, alone = self.training, self.training.group, self.learner
        self.meeting = Meeting(peers)
        self.learner = group.learner = JoinedLearner(
            self.meeting,
            alone._update,
            alone._batches,
            alone._policy,
            alone._write_policy,
            group.gauges.learner,
        )
        self.training = Training(
            group, before.progress, before._checkpoints, self.gauges, self._report, 1e6
        )

    def run(self, num_versions):
        while self.learner.version < num_versions:
            self.make_version()


@pytest.fixture
def ranks(tmp_path):
    made = [Rank(tmp_path / str(peers.rank), peers) for peers in counted_ranks(2)]
    yield made
    for rank in made:
        rank.writer.close()


def both(ranks, program):
    return on_threads([lambda rank=rank: program(rank) for rank in ranks], [r.peers for r in ranks])


def test_a_checkpoint_is_of_the_same_version_in_all_groups(ranks, tmp_path):
    both(ranks, Rank.start)
    both(ranks, lambda rank: rank.run(1))
    ranks[1].training._checkpoints._next_ns = 0
    both(ranks, lambda rank: rank.run(3))
    for rank in ranks:
        rank.writer.close()
        assert versions_saved(tmp_path / str(rank.peers.rank)) == [0, 2]


def test_a_checkpoint_that_was_deleted_in_one_group_is_replaced_in_all(ranks, tmp_path):
    both(ranks, Rank.start)
    for rank in ranks:
        rank.training._report_period_ns = 0
    ranks[0].writer.finds_loss = lambda: ranks[0].learner.version == 1
    ranks[1].writer.finds_loss = lambda: False
    both(ranks, lambda rank: rank.run(3))
    for rank in ranks:
        rank.writer.close()
        assert versions_saved(tmp_path / str(rank.peers.rank)) == [0, 2]


def test_a_batch_that_waits_for_other_groups_makes_no_checkpoint_and_no_report(ranks):
    both(ranks, Rank.start)
    saved = []
    ranks[0].writer.submit = saved.append
    ranks[0].training._checkpoints._next_ns = 0
    ranks[0].send()
    ranks[0].buffer.tick()

    def has_none():
        ranks[1].meeting._came_ns = 0
        ranks[1].training.tick()

    on_threads([ranks[0].training.tick, has_none])
    assert ranks[0].learner.waits_for_others
    assert saved == [] and ranks[0].of_kind("metrics") == []


@pytest.mark.parametrize("stopped", [0, 1])
def test_a_stop_that_one_has_heard_of_stops_all(ranks, stopped):
    both(ranks, Rank.start)
    both(ranks, lambda rank: rank.run(1))

    def until_over(rank):
        stop = Stop.FINISH if rank is ranks[stopped] else Stop.NO
        while (because := rank.training.ended(stop)) is None:
            rank.send()
            rank.training.tick()
        return because, rank.training.close(save=True)["version"]

    assert both(ranks, until_over) == [("interrupted", 1)] * 2
    assert ranks[0].peers.sizes == ranks[1].peers.sizes


def test_the_limit_of_environment_steps_is_that_of_the_run(ranks):
    both(ranks, Rank.start)
    both(ranks, lambda rank: rank.run(2))
    assert [rank.meeting.other_steps for rank in ranks] == [2 * STEPS, 2 * STEPS]
    assert ranks[0].meeting.agreed.env_steps == 4 * STEPS
    share = 4 * STEPS / ranks[0].spec.config.max_env_steps
    assert [rank.learner._update.progress[-1] for rank in ranks] == [share, share]


def test_a_version_in_work_is_cut_short_by_all_when_one_has_no_patience_left(tmp_path):
    script = tuple({"loss": float(number)} for number in range(50))
    algorithm = {"name": "tests.fakes.scripted:ALGORITHM", "script": script}
    ranks = [
        Rank(tmp_path / str(peers.rank), peers, algorithm=algorithm) for peers in counted_ranks(2)
    ]
    both(ranks, Rank.start)
    ranks[0].training._patience.is_spent = lambda level: level > Stop.NO
    begun = threading.Barrier(2)

    def run(rank):
        rank.send()
        rank.training.tick()
        begun.wait(30)
        assert not rank.learner.is_between_versions
        while rank.learner.version == 0:
            rank.training.ended(Stop.FINISH if rank is ranks[0] else Stop.NO)
            rank.training.tick()
        rank.writer.close()
        return rank.gauges.rows["learner"][Gauge.UPDATES]

    first, second = both(ranks, run)
    assert first == second < 50


def test_groups_with_different_parameters_do_not_start(ranks):
    with torch.no_grad():
        ranks[1].training.group._model.count += 1

    def start(rank):
        with pytest.raises(ReduceBroken, match="different parameters"):
            rank.training.start()

    both(ranks, start)


def test_groups_continue_at_the_same_version(ranks):
    ranks[0].training.group.continue_at(4)
    ranks[1].training.group.continue_at(7)
    both(ranks, Rank.start)
    assert [rank.board.version() for rank in ranks] == [7, 7]
    both(ranks, lambda rank: rank.run(8))
    assert [rank.gauges.rows["learner"][Gauge.UPDATES] for rank in ranks] == [UPDATES] * 2


def test_groups_continue_from_the_newest_checkpoint_that_all_of_them_have(ranks, tmp_path):
    both(ranks, Rank.start)
    for version in (1, 2):
        for rank in ranks:
            rank.training._checkpoints._next_ns = 0
        both(ranks, lambda rank, version=version: rank.run(version))
        for rank in ranks:
            assert rank.written.acquire(timeout=60)
    for rank in ranks:
        rank.writer.close()
    shutil.rmtree(list_checkpoints(tmp_path / "1")[-1])
    again = [Rank(tmp_path / str(peers.rank), peers) for peers in counted_ranks(2)]
    both(again, lambda rank: rank.training.resume(highest_version=2))
    both(again, Rank.start)
    for rank in again:
        assert rank.published() == UPDATES, "the model of version 1"
        assert rank.board.version() == 3, "versions never fall"
        rank.writer.close()
    (told,) = again[0].of_kind("restored")
    assert told["text"].startswith("Another group has no checkpoint v00000002. Continuing from")


def test_a_group_that_has_no_checkpoint_keeps_the_others_from_continuing(ranks, tmp_path):
    both(ranks, Rank.start)
    for rank in ranks:
        rank.writer.close()
    again = [Rank(tmp_path / str(peers.rank), peers) for peers in counted_ranks(2)]

    def begin(rank):
        with pytest.raises(ReduceBroken, match="Group 1 died before its first checkpoint"):
            if rank is again[0]:
                rank.training.resume(highest_version=0)
            rank.training.start()
        rank.writer.close()

    both(again, begin)
