"""Totals of other hosts are asked for, waited for, and added to the sums beside the learner."""

import numpy as np

from tianji.algorithms.interface import Gather
from tianji.buffer.gather.adding import AtLearner, FromHosts
from tianji.buffer.gather.rules import build_rule
from tianji.channels.contributions import (
    Contribution,
    ContributionReader,
    ContributionWriter,
    HostSums,
    WeighedTotal,
    answer_bytes,
    answer_of,
    contribution_bytes,
    read_wanted,
    wanted_bytes,
)
from tianji.channels.inproc import InprocBoard

P = 50
ACTORS = {0: [0, 1], 1: [2, 3, 4], 2: [5]}
"""Of each host; the learner is on the first."""


class OtherHost:
    """A host with boards of its own, which answers when the test says so."""

    def __init__(self, rule, actors, boards):
        self.wanted = InprocBoard(wanted_bytes(len(actors)))
        self.answers = InprocBoard(answer_bytes(len(actors), P))
        self.sums = HostSums(actors, self.wanted, self.wanted, self.answers)
        contributions = ContributionReader([boards[actor] for actor in actors])
        self.total = WeighedTotal(contributions, rule.weigh, P)

    def answer(self):
        asked = read_wanted(self.wanted)
        counts = self.total.add_up(asked.version, asked.actors)
        answer = np.frombuffer(answer_of(counts, self.total.total_P), np.uint8)
        self.answers.post(asked.number, lambda payload: np.copyto(payload, answer))


class Run:
    def __init__(self, gather, num_actors=6):
        self.rule = build_rule(gather, num_actors)
        self.boards = [InprocBoard(contribution_bytes(P)) for _ in range(num_actors)]
        self.writers = [ContributionWriter(board, board) for board in self.boards]
        self.hosts = [OtherHost(self.rule, ACTORS[host], self.boards) for host in (1, 2)]
        self.wakes = 0
        empty = InprocBoard(contribution_bytes(P))  # what lies on another host is not seen here
        here = [self.boards[actor] if actor in ACTORS[0] else empty for actor in range(num_actors)]
        self.adding = FromHosts(
            self.rule, ContributionReader(here), [host.sums for host in self.hosts], self.wake, P
        )
        self.alone = AtLearner(self.rule, ContributionReader(self.boards), P)
        self.sum_P = np.zeros(P, np.float32)

    def wake(self):
        self.wakes += 1

    def post(self, version=0, counts=(1,) * 6, seed=0):
        rng = np.random.default_rng(seed)
        for actor, count in enumerate(counts):
            sum_P = (rng.standard_normal(P) * 10.0 ** rng.integers(-6, 3, P)).astype(np.float32)
            self.writers[actor].post(Contribution(version, count), sum_P)

    def add_up(self, actors, version=0):
        return self.adding.add_up(version, actors, self.sum_P)


def test_hosts_give_the_bits_that_the_learner_alone_would_add_up():
    for rule in ("barrier", "harmonic", "first"):
        for seed in range(20):
            run, alone_P = Run(Gather(rule, 4, 4)), np.zeros(P, np.float32)
            run.post(3, counts := [1, 2, 3, 4, 5, 6], seed)
            assert run.add_up(range(6), 3) is None
            for host in run.hosts:
                host.answer()
            assert run.add_up(range(6), 3) == counts
            assert run.alone.add_up(3, range(6), alone_P) == counts
            assert run.sum_P.tobytes() == alone_P.tobytes()


def test_nothing_is_taken_before_every_host_has_answered():
    run = Run(Gather("barrier"))
    run.post()
    assert run.add_up(range(6)) is None
    run.hosts[1].answer()
    assert run.add_up(range(6)) is None
    run.hosts[0].answer()
    assert run.add_up(range(6)) == [1] * 6
    assert run.wakes == 1, "each host was asked once"


def test_hosts_of_which_nothing_was_counted_are_not_asked():
    run = Run(Gather("first", 2, 2))
    run.post()
    assert run.add_up([0, 1]) == [1, 1, 0, 0, 0, 0]
    assert run.wakes == 0
    assert run.add_up([0, 4], 0) is None
    assert run.hosts[1].wanted.version() == -1
    run.hosts[0].answer()
    assert run.add_up([0, 4], 0) == [1, 0, 0, 0, 1, 0]


def test_actors_that_are_left_out_are_not_in_the_total():
    run = Run(Gather("barrier"))
    run.post()
    run.rule.leave(3)
    run.add_up([2, 3, 5])
    for host in run.hosts:
        host.answer()
    assert run.add_up([2, 3, 5]) == [0, 0, 1, 0, 0, 1]


def test_when_a_round_is_opened_again_an_answer_from_before_does_not_count():
    run = Run(Gather("first", 2, 2))
    run.post(counts=[1, 0, 1, 0, 0, 1])
    assert run.add_up([2, 5]) is None
    run.hosts[0].answer()
    run.adding.reopen()
    run.post(counts=[1, 0, 2, 0, 0, 0])
    assert run.add_up([0, 2]) is None
    run.hosts[0].answer()
    assert run.add_up([0, 2]) == [1, 0, 2, 0, 0, 0]


def test_each_round_asks_anew():
    run = Run(Gather("barrier"))
    for version in range(3):
        run.post(version, seed=version)
        assert run.add_up(range(6), version) is None
        for host in run.hosts:
            host.answer()
        assert run.add_up(range(6), version) == [1] * 6
