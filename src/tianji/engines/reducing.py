"""The all-reduce realisation, from a config and a plan; see reducing.py of buffer and actor.

Actors take the learner's steps themselves. In one process they take them with the total that was
added up by the learner's side; between processes a collective gives it to each of them.
"""

from __future__ import annotations

import time

from torch import nn

from tianji.actor.own_policy import OwnPolicy
from tianji.actor.reducing import Rank, ReducingActor
from tianji.algorithms.interface import Gather, Update
from tianji.algorithms.registry import load_algorithm
from tianji.algorithms.whole import WholeSnapshot
from tianji.buffer.adding import Adding, AtLearner, Remembered
from tianji.buffer.rules import GatherRule, build_rule
from tianji.channels.contributions import (
    BoardContributionReader,
    BoardContributionWriter,
    contribution_bytes,
)
from tianji.channels.inproc import InprocBoard
from tianji.channels.interface import BoardReader, Totals
from tianji.channels.reduce import GlooReduce
from tianji.channels.reports import Reports
from tianji.engines.build import build_model
from tianji.engines.gradients import (
    OpenContributions,
    OpenSender,
    build_gradient_actor,
    gather_of,
    num_parameters,
)
from tianji.engines.spec import RunSpec
from tianji.models.flat import Snapshot
from tianji.trace.spans import Spans
from tianji.types import Clock


def is_all_reduce(gather: Gather | None) -> bool:
    return gather is not None and gather.realisation == "all-reduce"


def published(spec: RunSpec, model: nn.Module, update: Update) -> Snapshot | WholeSnapshot:
    """What the learner posts: for actors that take its steps, all that the next step needs."""
    return WholeSnapshot(model, update) if is_all_reduce(gather_of(spec)) else Snapshot(model)


def own_policy(
    spec: RunSpec, gather: Gather, board: BoardReader, totals: Totals, gauges: memoryview[int]
) -> OwnPolicy:
    model = build_model(spec)
    update = load_algorithm(spec.config.algorithm.name).build_update(
        model, spec.spaces, spec.config
    )
    weigh = build_rule(gather, spec.plan.num_actors).weigh
    return OwnPolicy(model, update, board, totals, weigh, gauges)


class InprocSums:
    """All actors' sums in one process: both ends of them."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec
        self._gather = gather_of(spec)
        self._boards: list[InprocBoard] = []
        self._total: Remembered | None = None

    def make_adding(self, rule: GatherRule, num_parameters: int) -> Adding:
        """For the learner's side, which comes first."""
        num_actors, nbytes = self._spec.plan.num_actors, contribution_bytes(num_parameters)
        self._boards = [InprocBoard(nbytes) for _ in range(num_actors)]
        contributions = BoardContributionReader(self._boards)
        at_learner = AtLearner(rule, contributions, num_actors, num_parameters)
        if not is_all_reduce(self._gather):
            return at_learner
        self._total = Remembered(at_learner)
        return self._total

    def open(self, actor: int) -> OpenContributions:
        board = self._boards[actor]
        return lambda _: BoardContributionWriter(board, board)

    def policy(self, board: BoardReader, gauges: memoryview[int]) -> BoardReader:
        """What an actor reads as the policy."""
        if self._gather is None or self._total is None:
            return board
        return own_policy(self._spec, self._gather, board, self._total, gauges)


def build_reducing_actor(
    reduce: GlooReduce,
    spec: RunSpec,
    index: int,
    open_sender: OpenSender,
    board: BoardReader,
    open_contributions: OpenContributions,
    gauges: memoryview[int],
    spans: Spans | None = None,
    now_ns: Clock = time.monotonic_ns,
    reports: Reports | None = None,
) -> ReducingActor:
    """An actor in a process of its own, as a rank."""
    gather = gather_of(spec)
    assert gather is not None, "only sums of gradients are reduced"
    num_actors, size = spec.plan.num_actors, num_parameters(build_model(spec))
    contributions = open_contributions(size)
    weigh = build_rule(gather, num_actors).weigh
    rank = Rank(index, num_actors, size, reduce, contributions, weigh, gauges)
    actor = build_gradient_actor(
        spec,
        index,
        open_sender,
        own_policy(spec, gather, board, rank, gauges),
        lambda _: contributions,
        gauges,
        spans,
        now_ns,
        reports,
    )
    return ReducingActor(actor, rank)
