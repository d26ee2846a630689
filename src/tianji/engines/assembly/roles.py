"""Builds roles from the records of a program and the ends of its channels, for every engine."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch

from tianji.actor.rank import Rank
from tianji.actor.role import Actor
from tianji.algorithms.interface import Update
from tianji.algorithms.registry import load_algorithm
from tianji.buffer.gather.adding import Adding, AtLearner, KeptTotal
from tianji.buffer.gather.reducing import AllReduced
from tianji.buffer.gather.rules import GatherRule
from tianji.buffer.regroup import regrouped
from tianji.buffer.role import Buffer
from tianji.channels.board import board_bytes
from tianji.channels.contributions import (
    BoardContributionReader,
    BoardContributionWriter,
    contribution_bytes,
)
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.interface import Batches, Receiver
from tianji.channels.memory import to_pages
from tianji.channels.orders import BufferRows
from tianji.channels.reduce import GlooReduce
from tianji.channels.reports import Reports
from tianji.engines.assembly.build import build_actor, build_buffer, build_evaluator, spans_of
from tianji.engines.assembly.gradients import (
    build_rank,
    gather_of,
    is_all_reduce,
    num_parameters,
    own_policy,
    published,
)
from tianji.engines.assembly.model import build_model
from tianji.engines.assembly.wiring import Ends, actor_rows, buffer_rows
from tianji.engines.spec import RunSpec
from tianji.evaluator.role import Evaluator
from tianji.learner.checkpoints import ActorStates, Checkpoints
from tianji.learner.group import Group, GroupGauges
from tianji.learner.progress import Progress
from tianji.learner.role import Learner
from tianji.learner.training import Training
from tianji.programs.program import Program, Role
from tianji.records import BoardBytes, BuiltReport
from tianji.trace.parts import trace_batches, trace_checkpoints, trace_update, trace_writer
from tianji.trace.spans import Spans
from tianji.types import Clock


class Roles:
    """Builds roles one by one. In one process the training comes first: it makes the boards."""

    def __init__(
        self,
        spec: RunSpec,
        program: Program,
        ends: Ends,
        reports: Reports,
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        self._spec = spec
        self._program = program
        self._ends = ends
        self._reports = reports
        self._now_ns = now_ns
        self._gather = gather_of(spec)
        self._reduces: list[GlooReduce] = []
        self.spans: dict[str, Spans | None] = {}
        """Writers of each role's spans; None without a trace."""
        self.ranks: dict[str, Rank] = {}
        """The actors' ends of an all-reduce between processes."""
        self._total: KeptTotal | None = None

    def _open_spans(self, role: Role) -> Spans | None:
        self.spans[role.name] = spans = spans_of(self._spec, role.name)
        return spans

    def actor(self, role: Role, mends: bool) -> Actor:
        """mends: an environment that fails is replaced; else its error ends the run."""
        spec, ends = self._spec, self._ends
        rows, spans = actor_rows(ends, role), self._open_spans(role)
        policy, open_sum = ends.policy_reader(), None
        if self._gather is not None:
            open_sum = cache(partial(self._open_sum, role))  # a board has one writer
            if (reduce := self._open_reduce(role)) is not None:
                rank = build_rank(spec, role.index, reduce, open_sum, rows)
                self.ranks[role.name] = rank
                policy = own_policy(spec, policy, rank, rows.gauges)
            elif self._total is not None:
                policy = own_policy(spec, policy, self._total, rows.gauges)
        return build_actor(
            spec,
            role.index,
            partial(ends.sender, role),
            policy,
            rows,
            spans,
            self._now_ns,
            self._reports if mends else None,
            open_sum,
        )

    def _open_sum(self, role: Role, num_parameters: int) -> BoardContributionWriter:
        board = self._ends.sum_writer(role, contribution_bytes(num_parameters))
        return BoardContributionWriter(*board)

    def evaluator(self, role: Role) -> Evaluator:
        row, spans = self._ends.gauges.rows[role.name], self._open_spans(role)
        policy = self._ends.policy_reader()
        return build_evaluator(self._spec, policy, row, self._reports, spans, self._now_ns)

    def training(
        self,
        learner: Role,
        actor_states: ActorStates,
        share: Callable[[Buffer], Buffer] = lambda buffer: buffer,
    ) -> Training:
        """Build a group's buffer and learner, and what takes them to the end of the run.

        share: makes the buffer safe for two threads, where it and its learner have one each."""
        spec, ends, now_ns = self._spec, self._ends, self._now_ns
        (buffer_role,) = self._program.of_kind("buffer")
        buffer_ends = buffer_rows(ends, buffer_role, self._program.of_kind("actor"))
        rows = GroupGauges(
            ends.gauges.rows[learner.name],
            buffer_ends.gauges,
            [actor.gauges for actor in buffer_ends.actors],
        )
        spans, buffer_spans = self._open_spans(learner), self._open_spans(buffer_role)
        model = build_model(spec)
        update = load_algorithm(spec.config.algorithm.name).build_update(
            model, spec.spaces, spec.config
        )
        snapshot = published(spec, model, update)
        self._tell_sizes(learner, model, snapshot.nbytes)
        policy = ends.policy_writer(snapshot.nbytes)
        progress = Progress(spec.config)
        rows.buffer[Gauge.ACTIVITY] = Activity.RECEIVING
        buffer = share(self._buffer(learner, model, progress, buffer_ends, buffer_spans))
        steps: Update = update
        batches: Batches = buffer
        if spans is not None and buffer_spans is not None:
            steps, batches = trace_update(update, spans), trace_batches(buffer, buffer_spans)
            policy = trace_writer(policy, spans)
        learning = Learner(
            steps,
            batches,
            policy,
            snapshot.write_to,
            lambda: progress.fraction,
            rows.learner,
            now_ns,
        )
        group = Group(model, update, buffer, learning, rows, spec.plan.ratio, now_ns)
        checkpoints = Checkpoints(
            spec.config.checkpoint,
            spec.run_dir,
            group,
            progress,
            self._reports,
            actor_states,
            self._for_these_actors,
            now_ns,
        )
        if spans is not None:
            checkpoints = trace_checkpoints(checkpoints, spans)
        period_s = spec.config.observe.period_s
        return Training(group, progress, checkpoints, ends.gauges, self._reports, period_s, now_ns)

    def _buffer(
        self,
        learner: Role,
        model: torch.nn.Module,
        progress: Progress,
        rows: BufferRows,
        spans: Spans | None,
    ) -> Buffer:
        receiver = self._ends.receiver()
        return build_buffer(
            self._spec,
            receiver,
            self._ends.replay_memory,
            progress,
            rows,
            spans,
            self._now_ns,
            partial(self._adding, learner, receiver, rows),
            num_parameters(model),
        )

    def _adding(
        self,
        learner: Role,
        receiver: Receiver,
        rows: BufferRows,
        rule: GatherRule,
        size: int,
    ) -> Adding:
        boards = self._ends.sum_readers(contribution_bytes(size))
        at_learner = AtLearner(rule, BoardContributionReader(boards), len(boards), size)
        reduce = self._open_reduce(learner)
        if reduce is not None:
            return AllReduced(rule, at_learner, reduce, rows.actors, receiver.wake_senders)
        if not is_all_reduce(self._gather):
            return at_learner
        self._total = KeptTotal(at_learner)
        return self._total

    def _open_reduce(self, role: Role) -> GlooReduce | None:
        # A rank that hangs is killed after half of it, which ends the collective at once.
        timeout_s = 2 * self._spec.config.supervise.heartbeat_timeout_s
        reduce = self._ends.reduce(role, timeout_s)
        if reduce is not None:
            self._reduces.append(reduce)
        return reduce

    def _tell_sizes(self, learner: Role, model: torch.nn.Module, policy_bytes: int) -> None:
        built: BoardBytes = {"policy_board_bytes": to_pages(board_bytes(policy_bytes))}
        if self._gather is not None:
            one = board_bytes(contribution_bytes(num_parameters(model)))
            built["sum_boards_bytes"] = self._spec.plan.num_actors * to_pages(one)
        self._reports(BuiltReport(kind="built", role=learner.name, record=built))

    def _for_these_actors(self, saved: dict[str, Any]) -> dict[str, Any]:
        """Return a buffer's saved state as the present number of actors would have left it."""
        plan = self._spec.plan
        return regrouped(saved, plan.num_actors, plan.envs_per_actor)

    def close(self) -> None:
        for reduce in self._reduces:
            reduce.close()
