"""Groups in one process: each has parameters and statistics of its own, and a board."""

import os

import numpy as np
import pytest
import torch
from torch import nn

from tests.fakes.scripted import PAYLOAD_BYTES, ScriptedUpdate, gauge_row
from tests.unit.learner.test_learner_role import Batches
from tianji.channels.board import ShmBoardReader, ShmBoardWriter
from tianji.channels.gauges import Gauge
from tianji.channels.inproc import InprocBoard
from tianji.config.run import RunConfig, peers_of, team_of
from tianji.learner.combination import Combination, MixedState
from tianji.learner.role import Learner
from tianji.models.moments import RunningMoments
from tianji.models.tensors import flatten


class Statistic:
    """Running statistics that count how often they were changed."""

    def __init__(self, *values):
        self.moments = RunningMoments.zeros(1)
        self.moments.update(np.array(values, np.float32)[:, None])
        self.uses = 0

    def use_moments(self):
        self.uses += 1


class Group:
    def __init__(self, values, statistics=()):
        self.module = nn.Linear(len(values), 1, bias=False)
        self.module.weight.data[0] = torch.tensor(values)
        self.state = MixedState(flatten(self.module), statistics)

    @property
    def values(self):
        return self.module.weight.detach()[0].tolist()


def config(num_groups, combine, each=1):
    return RunConfig(
        algorithm="ppo", num_groups=num_groups, combine=combine, learners_per_group=each
    )


class Ring:
    """Groups that mix after every update."""

    def __init__(self, *vectors, combine="average", every=1, statistics=None):
        given = statistics or [()] * len(vectors)
        self.versions = [0] * len(vectors)
        self.groups = [Group(v, s) for v, s in zip(vectors, given, strict=True)]
        boards = [InprocBoard(group.state.nbytes) for group in self.groups]
        self.combinations = [
            Combination(
                i, group.state, boards[i],
                {peer: boards[peer] for peer in peers_of(i, config(len(vectors), combine))}, every,
            )
            for i, group in enumerate(self.groups)
        ]  # fmt: skip

    def update(self, *numbers):
        for i in numbers or range(len(self.groups)):
            self.combinations[i].after_update()

    def mix(self, *numbers):
        """Mix once in a new version of each group."""
        for i in numbers or range(len(self.groups)):
            self.versions[i] += 1
            self.combinations[i].mix(self.versions[i])

    @property
    def values(self):
        return [group.values for group in self.groups]


def test_average_reads_all_others_and_gossip_the_group_before_in_a_ring():
    def read(num_groups, combine, each=1):
        asked = config(num_groups, combine, each)
        return [peers_of(learner, asked) for learner in range(asked.num_learners)]

    assert read(3, "average") == [(1, 2), (0, 2), (0, 1)]
    assert read(3, "gossip") == [(2,), (0,), (1,)]
    assert read(1, "average") == read(1, "gossip") == read(1, "gradients") == [()]
    assert read(3, "average", 2) == [(2, 4), (), (0, 4), (), (0, 2), ()], "the first of each group"
    assert read(2, "gossip", 2) == [(2,), (), (0,), ()]


def test_learners_of_a_group_and_those_of_all_with_gradients_make_updates_together():
    assert team_of(3, config(3, "average", 2)) == (2, 3)
    assert team_of(3, config(3, "average")) == (3,)
    assert team_of(3, config(3, "gradients", 2)) == (0, 1, 2, 3, 4, 5)
    assert team_of(1, config(1, "gossip", 4)) == (0, 1, 2, 3)


def test_the_mean_of_three_groups_is_exact_and_the_same_in_all():
    ring = Ring([1.0, 10.0], [2.0, 20.0], [6.0, 60.0])
    ring.update()
    ring.mix()
    assert ring.values == [[3.0, 30.0]] * 3


def test_groups_that_mix_the_same_states_are_equal_to_the_bit():
    rng = np.random.default_rng(3)
    ring = Ring(*(rng.normal(size=50).astype(np.float32).tolist() for _ in range(5)))
    ring.update()
    ring.mix()
    assert ring.values == [ring.values[0]] * 5


def test_gossip_in_a_ring_keeps_the_mean_of_all_and_contracts_differences():
    ring = Ring([0.0], [4.0], [8.0], [16.0], combine="gossip")
    spreads = []
    for _ in range(6):
        ring.update()
        ring.mix()
        values = [value for (value,) in ring.values]
        assert sum(values) / 4 == 7.0
        spreads.append(max(values) - min(values))
    assert ring.values[0] != ring.values[1]
    assert spreads == sorted(spreads, reverse=True) and spreads[-1] < 16.0 / 4


def test_gossip_mixes_half_and_half_with_the_group_before():
    ring = Ring([0.0], [4.0], [8.0], combine="gossip")
    ring.update()
    ring.mix()
    assert ring.values == [[4.0], [2.0], [6.0]]


def test_a_peer_that_has_not_posted_yet_is_left_out():
    ring = Ring([1.0], [2.0], [6.0])
    ring.update(0)
    ring.mix(0)
    assert ring.values == [[1.0], [2.0], [6.0]]
    ring.update(2)
    ring.mix(2)
    assert ring.values == [[1.0], [2.0], [3.5]]


def test_a_post_is_mixed_once_so_that_a_slow_peer_holds_nobody_back():
    ring = Ring([1.0], [3.0], [5.0])
    ring.update()
    ring.mix(0)
    assert ring.values[0] == [3.0]
    ring.groups[0].module.weight.data[0, 0] = 9.0  # it learns
    ring.update(0, 2)
    ring.mix(0)
    assert ring.values[0] == [7.0], "the mean of 9 and of the new 5, without the old 3"
    ring.update(0)
    ring.mix(0)
    assert ring.values[0] == [7.0]


def test_it_mixes_only_every_few_updates():
    ring = Ring([1.0], [3.0], every=3)
    due = []
    for _ in range(6):
        ring.update(0)
        due.append(ring.combinations[0].is_due)
        if due[-1]:
            ring.mix(0)
    assert due == [False, False, True] * 2


def test_views_of_the_parameters_see_the_mix():
    ring = Ring([1.0, 2.0], [3.0, 6.0])
    view = flatten(ring.groups[0].module).vector_P.numpy()
    ring.update()
    ring.mix()
    assert view.tolist() == [2.0, 4.0]


def test_a_restarted_learner_continues_with_the_mean_of_its_peers_alone():
    ring = Ring([100.0], [2.0], [4.0])
    assert not ring.combinations[0].catch_up(), "nobody has posted"
    ring.update(1, 2)
    assert ring.combinations[0].catch_up()
    assert ring.values == [[3.0], [2.0], [4.0]]


def test_statistics_are_mixed_as_if_each_value_were_counted_by_all_with_an_equal_weight():
    one, other = Statistic(1.0, 3.0, 8.0), Statistic(100.0)
    ring = Ring([0.0], [0.0], statistics=[(one,), (other,)])
    ring.update()
    ring.mix()
    everything = np.array([1.0, 3.0, 8.0, 100.0])
    for statistic in (one, other):
        assert statistic.moments.count == 2.0
        assert statistic.moments.mean_F == pytest.approx(everything.mean())
        assert statistic.moments.variance_F == pytest.approx(everything.var())
        assert statistic.uses == 1


def test_statistics_without_a_value_stay_as_they_are():
    one, other = Statistic(), Statistic()
    ring = Ring([0.0], [0.0], statistics=[(one,), (other,)])
    ring.update()
    ring.mix()
    assert (one.moments.count, one.moments.mean_F) == (0.0, 0.0)


def make_learner(combination):
    board, gauges = InprocBoard(PAYLOAD_BYTES), gauge_row()
    update = ScriptedUpdate(({}, {}, {"loss": 3.0}))
    learner = Learner(
        update, Batches(1), board, lambda payload: None, lambda: 0.0, gauges,
        combination=combination,
    )  # fmt: skip
    return learner, board, gauges


def test_a_mix_is_a_tick_of_its_own_before_the_next_update_or_the_publication():
    ring = Ring([1.0], [3.0], every=3)
    learner, board, gauges = make_learner(ring.combinations[0])
    ring.update(1, 1, 1)
    for _ in range(3):
        assert learner.tick()
    assert (gauges[Gauge.UPDATES], ring.values[0]) == (3, [1.0])
    assert learner.tick() and ring.values[0] == [2.0]
    assert board.version() == -1, "what is published is mixed"
    assert learner.tick() and board.version() == 1


def test_the_learner_waits_for_nobody():
    ring = Ring([1.0], [3.0])
    learner, board, _ = make_learner(ring.combinations[0])
    while learner.tick():
        continue
    assert board.version() == 1 and ring.values == [[1.0], [3.0]]


def test_a_learner_that_takes_over_continues_the_posts_of_its_predecessor():
    group = Group([1.0])
    fds = [os.memfd_create("own"), os.memfd_create("peer")]
    readers = {1: ShmBoardReader(fds[1])}
    writer = ShmBoardWriter(fds[0], group.state.nbytes, "peer")
    first = Combination(0, group.state, writer, readers, 1)
    first.after_update()
    first.mix(1)
    assert ShmBoardReader(fds[0]).version() == 0
    posted = ShmBoardReader(fds[0]).version() + 1
    Combination(0, group.state, writer, readers, 1, posted).after_update()
    assert ShmBoardReader(fds[0]).version() == 1
