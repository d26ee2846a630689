"""Server and all-reduce give the same; whoever dies or comes, no gradient is lost or counted twice.

Learner's side and actors are the real ends, over a Reduce in which everybody sits in one process.
"""

import numpy as np
import pytest

from tianji.actor.rank import Rank
from tianji.algorithms.interface import Gather
from tianji.buffer.gather.adding import AtLearner
from tianji.buffer.gather.reducing import MAX_ATTEMPTS, RETRY_NS, SILENT_NS, AllReduced
from tianji.buffer.gather.rules import build_rule
from tianji.channels.contributions import (
    Contribution,
    ContributionReader,
    ContributionWriter,
    contribution_bytes,
)
from tianji.channels.gauges import Gauge
from tianji.channels.inproc import InprocBoard
from tianji.channels.orders import BufferRows, Order
from tianji.channels.reduce import Call
from tianji.errors import ReduceBroken

P = 4
RULES = {"first": Gather("first", 6, 6), "harmonic": Gather("harmonic", 6, 6)}


class Hub:
    """Where all ends of a Reduce meet."""

    def __init__(self):
        self.teams = {}
        self.given = {}
        self.is_broken = False

    def total(self, team):
        given = self.given.get(team, {})
        return sum(given.values()) if len(given) == team.size else None


class End:
    def __init__(self, hub):
        self._hub = hub
        self._team = None

    def announce(self, team):
        assert team.number not in self._hub.teams, "a number is used once, by whatever learner"
        self._hub.teams[team.number] = team

    def team(self, number):
        return self._hub.teams[number]

    def give(self, team, rank, values):
        self._team = team
        given = self._hub.given.setdefault(team, {})
        if len(given) == team.size:
            given.clear()  # another collective of the same team
        assert rank not in given, "nobody gives twice"
        given[rank] = values.copy()

    def is_under_way(self):
        return self._team is not None and self._hub.total(self._team) is None

    def result(self):
        if self._hub.is_broken:
            raise ReduceBroken("The all-reduce has failed: a test wants it so.")
        return self._hub.total(self._team)


class Rig:
    """`num_actors` ranks, the learner's side, and a server beside them on the same sums."""

    def __init__(self, rule="first", num_actors=3):
        self.now = 0
        self.gather = RULES[rule]
        self.num_actors = num_actors
        self.hub = Hub()
        self.rows = BufferRows.private(num_actors).actors
        boards = [InprocBoard(contribution_bytes(P)) for _ in range(num_actors)]
        self.writers = [ContributionWriter(board, board) for board in boards]
        self.rule = build_rule(self.gather, num_actors)
        self.server = AtLearner(self.rule, ContributionReader(boards), P)
        self.learner = self.make_learner()
        self.ranks = [self.make_rank(actor) for actor in range(num_actors)]
        self.tick(*range(num_actors))

    def make_learner(self):
        return AllReduced(
            self.rule, self.server, End(self.hub), self.rows, lambda: None, lambda: self.now
        )

    def make_rank(self, actor):
        end, writer, row = End(self.hub), self.writers[actor], self.rows[actor]
        return Rank(actor, self.num_actors, P, end, writer, self.rule.weigh, row)

    def tick(self, *actors):
        return [self.ranks[actor].tick() for actor in actors]

    def post(self, version, *counts):
        """Every actor's sum of so many gradients at this version."""
        for actor, count in enumerate(counts):
            rng = np.random.default_rng((version, actor))
            sum_P = rng.standard_normal((count, P)).astype(np.float32).sum(0)
            if count:
                self.writers[actor].post(Contribution(version, count), sum_P)

    def add_up(self, version):
        sum_P = np.empty(P, np.float32)
        counts = self.learner.add_up(version, range(self.num_actors), sum_P)
        return None if counts is None else (sum_P, counts)

    def by_server(self, version):
        sum_P = np.empty(P, np.float32)
        return sum_P, self.server.add_up(version, range(self.num_actors), sum_P)

    def assert_same_as_server(self, version):
        found, asked = self.add_up(version), self.by_server(version)
        assert found is not None
        assert found[1] == asked[1]
        np.testing.assert_allclose(found[0], asked[0], rtol=1e-6)

    def kill(self, actor):
        """As the supervisor and the buffer do."""
        self.rows[actor].supervision[Order.RESETS] += 1
        self.rows[actor].orders[Order.RESETS] += 1


@pytest.mark.parametrize("rule", RULES)
def test_server_and_all_reduce_have_the_same_total(rule):
    rig = Rig(rule)
    for version, counts in enumerate([(3, 2, 1), (1, 1, 4), (2, 2, 2)]):
        rig.post(version, *counts)
        assert rig.add_up(version) is None, "nobody has given yet"
        rig.tick(0, 1, 2)
        rig.assert_same_as_server(version)


@pytest.mark.parametrize("rule", RULES)
def test_every_rank_gets_what_the_learner_gets(rule):
    rig = Rig(rule)
    rig.post(0, 3, 2, 1)
    rig.add_up(0)
    rig.tick(0, 1)
    assert rig.ranks[0].is_under_way()
    assert rig.ranks[0].total(0) is None
    rig.tick(2)
    sum_P, counts = rig.add_up(0)
    for rank in rig.ranks:
        assert not rank.is_under_way()
        np.testing.assert_array_equal(rank.total(0).sum_P, sum_P)
        assert rank.total(0).counts == counts == [3, 2, 1]
        assert rank.total(1) is None


def test_a_rank_gives_once_per_version():
    rig = Rig()
    rig.post(0, 3, 2, 1)
    rig.add_up(0)
    assert rig.tick(0, 0) == [True, False]


def test_a_sum_of_another_version_counts_as_nothing():
    rig = Rig()
    rig.post(0, 1, 1, 1)
    rig.post(1, 3, 3, 0)
    rig.add_up(1)
    rig.tick(0, 1, 2)
    assert rig.add_up(1)[1] == [3, 3, 0]


def test_the_team_stays_while_its_members_do():
    rig = Rig()
    for version in range(3):
        rig.post(version, 2, 2, 2)
        rig.add_up(version)
        rig.tick(0, 1, 2)
        rig.add_up(version)
    assert len([team for team in rig.hub.teams.values() if team.actors]) == 1


def test_a_member_that_dies_is_replaced_by_what_it_had_posted():
    rig = Rig()
    rig.post(0, 3, 2, 1)
    rig.add_up(0)
    rig.tick(0, 2)
    rig.kill(1)
    assert rig.add_up(0) is None, "a team without it was made"
    assert rig.ranks[0].total(0) is None
    assert rig.tick(0, 2) == [True, True], "the others give again, to the new team"
    rig.assert_same_as_server(0)


def test_an_actor_that_takes_over_is_in_the_team_from_the_next_round_on():
    rig = Rig()
    rig.kill(1)
    rig.post(0, 3, 2, 1)
    rig.add_up(0)
    rig.tick(0, 2)
    rig.ranks[1] = rig.make_rank(1)
    assert rig.tick(1) == [False], "it was not called"
    rig.assert_same_as_server(0)
    assert rig.ranks[1].total(0) is None
    rig.post(1, 2, 2, 2)
    rig.add_up(1)
    assert rig.tick(0, 1, 2) == [True] * 3
    rig.assert_same_as_server(1)


def test_one_who_takes_over_gives_nothing_to_the_team_of_its_predecessor():
    rig = Rig()
    rig.post(0, 3, 2, 1)
    rig.add_up(0)
    rig.ranks[1] = rig.make_rank(1)
    assert rig.tick(1) == [False]


def test_a_collective_that_failed_is_made_again_a_little_later():
    rig = Rig()
    rig.post(0, 3, 2, 1)
    rig.add_up(0)
    rig.tick(0, 1, 2)
    rig.hub.is_broken = True
    assert rig.add_up(0) is None
    assert "failed" in rig.learner.news()[0]
    assert rig.learner.news() == []
    assert rig.ranks[0].total(0) is None
    rig.hub.is_broken = False
    assert rig.add_up(0) is None
    assert rig.tick(0) == [False], "nobody was called again yet"
    rig.now += RETRY_NS
    assert rig.add_up(0) is None
    assert rig.tick(0, 1, 2) == [True] * 3
    rig.assert_same_as_server(0)


def test_what_keeps_failing_is_read_from_where_it_lies():
    rig = Rig()
    rig.hub.is_broken = True
    rig.post(0, 3, 2, 1)
    for _ in range(MAX_ATTEMPTS):
        assert rig.add_up(0) is None
        rig.now += RETRY_NS
    rig.assert_same_as_server(0)
    rig.hub.is_broken = False
    rig.tick(0, 1, 2)
    assert rig.ranks[0].total(0) is None, "the next version comes from the board"
    rig.post(1, 2, 2, 2)
    rig.add_up(1)
    rig.tick(0, 1, 2)
    rig.assert_same_as_server(1)


def pass_time_with(rig, *alive):
    rig.now += SILENT_NS + 1
    for actor in alive:
        rig.rows[actor].gauges[Gauge.HEARTBEAT_NS] = rig.now


def test_a_member_that_hangs_is_not_waited_for_and_takes_part_again_when_it_is_back():
    rig = Rig()
    rig.post(0, 3, 2, 1)
    rig.add_up(0)
    rig.tick(0, 2)
    pass_time_with(rig, 0, 2)
    assert rig.add_up(0) is None, "a team without it was made"
    assert rig.tick(0, 2) == [True, True]
    rig.assert_same_as_server(0)
    (news,) = rig.learner.news()
    assert news.startswith("actor-1 does not answer the all-reduce")
    rig.post(1, 2, 0, 2)
    rig.add_up(1)
    assert rig.tick(0, 2) == [True, True]
    rig.assert_same_as_server(1)
    rig.rows[1].gauges[Gauge.HEARTBEAT_NS] = rig.now
    assert rig.tick(1) == [False], "it was not called"
    rig.post(2, 2, 2, 2)
    rig.add_up(2)
    assert rig.tick(0, 1, 2) == [True] * 3
    rig.assert_same_as_server(2)


def test_one_that_is_silent_already_is_told_of_too():
    rig = Rig()
    pass_time_with(rig, 0, 2)
    rig.post(0, 3, 0, 1)
    rig.add_up(0)
    assert rig.tick(0, 2) == [True, True]
    (news,) = rig.learner.news()
    assert news.startswith("actor-1 does not answer the all-reduce")


def test_without_any_rank_the_learner_adds_up_alone():
    rig = Rig()
    for actor in range(3):
        rig.kill(actor)
    rig.post(0, 3, 2, 1)
    rig.assert_same_as_server(0)


def test_an_actor_that_the_rule_leaves_out_is_not_in_the_team():
    rig = Rig("harmonic")
    rig.rule.leave(2)
    rig.post(0, 3, 3, 1)
    rig.add_up(0)
    assert rig.tick(0, 1, 2) == [True, True, False]
    assert rig.add_up(0)[1] == [3, 3, 0]


def test_a_learner_that_was_restored_voids_what_was_under_way():
    rig = Rig()
    rig.post(0, 3, 2, 1)
    rig.add_up(0)
    rig.tick(0, 1, 2)
    assert rig.ranks[0].total(0) is not None
    rig.learner = rig.make_learner()
    assert rig.ranks[0].total(0) is None
    assert rig.tick(0) == [False]
    rig.post(1, 2, 2, 2)
    rig.add_up(1)
    rig.tick(0, 1, 2)
    rig.assert_same_as_server(1)


@pytest.mark.parametrize("call", [Call(0, -1), Call(1, -1), Call(7, 0), Call(2**30, 2**31)])
def test_a_call_fits_into_one_word(call):
    assert Call.of_word(call.to_word()) == call
    assert 0 <= call.to_word() < 2**63
