"""A worker's roles on the shared memory that it inherited."""

from __future__ import annotations

from functools import cache, partial

from tianji.buffer.adding import Adding, AtLearner
from tianji.buffer.reducing import AllReduced
from tianji.buffer.rules import GatherRule
from tianji.channels.board import ShmBoardReader, ShmBoardWriter
from tianji.channels.contributions import (
    BoardContributionReader,
    BoardContributionWriter,
    contribution_bytes,
)
from tianji.channels.interface import BoardReader, Receiver
from tianji.channels.layout import Layout
from tianji.channels.memory import Bell, Segment
from tianji.channels.reduce import GlooReduce
from tianji.channels.shm import ShmReceiver, ShmSender, StreamMemory
from tianji.checkpoint.load import list_checkpoints
from tianji.engines.build import build_actor, build_evaluator, spans_of
from tianji.engines.control import Control, Patience, Stop, Word
from tianji.engines.gradients import OpenContributions, build_rank, own_policy
from tianji.engines.interface import Report, Reports
from tianji.engines.learner_side import LearnerSide
from tianji.engines.loop import run_loop, timed_tick
from tianji.engines.restored import begun_anew_report
from tianji.engines.spec import RunSpec
from tianji.programs.program import TOTAL, program_for, sum_name
from tianji.trace.parts import trace_bell
from tianji.trace.spans import Spans


class Attachment:
    """The segments of the run, seen from one worker."""

    def __init__(self, spec: RunSpec, fds: dict[str, int], worker: str) -> None:
        plan = spec.plan
        self._spec = spec
        self._worker = worker
        self._program = program_for(spec.config, plan)
        self._control = Control(self._program, Segment.attach(fds["control"]))
        self._policy_fd = fds["policy"]
        names = [sum_name(index) for index in range(plan.num_actors)]
        self._sum_fds = [fds[name] for name in names if name in fds]
        self._total_fd = fds.get(TOTAL)
        self._reduce: GlooReduce | None = None
        self._stream = StreamMemory(
            Segment.attach(fds["slots"]),
            Segment.attach(fds["lanes"]),
            Layout.from_json(plan.layout),
            plan.num_slots,
            plan.num_actors,
        )

    def run(self, reports: Reports, resume: bool, is_restart: bool) -> None:
        kind = next(role.kind for role in self._program.roles if role.worker == self._worker)
        if kind == "actor":
            self._run_actor(reports)
        elif kind == "evaluator":
            self._run_evaluator(reports)
        else:
            self._run_learner_side(reports, resume, is_restart)
        if self._reduce is not None:
            self._reduce.close()

    def _run_actor(self, reports: Reports) -> None:
        control = self._control
        index = int(self._worker.removeprefix("actor-"))
        row = control.gauges.rows[self._worker]
        spans = spans_of(self._spec, self._worker)
        open_sender = partial(ShmSender, self._stream, index, control.bells["learner"])
        policy: BoardReader = ShmBoardReader(self._policy_fd)
        sums = self._open_contributions(index) if self._sum_fds else None
        rank = None
        if sums is not None and (reduce := self._open_reduce()) is not None:
            rank = build_rank(self._spec, index, reduce, sums, row)
            policy = own_policy(self._spec, policy, rank, row)
        parts = self._spec, index, open_sender, policy, row, spans
        actor = build_actor(*parts, reports=reports, open_contributions=sums)

        def tick() -> bool:
            """The roles of this worker, in turn."""
            has_given = rank is not None and timed_tick(rank, row)
            return timed_tick(actor, row) or has_given

        run_loop(tick, [row], self._bell(spans), control.is_stopping, lambda: actor.due_ns)
        actor.close()

    def _open_contributions(self, index: int) -> OpenContributions:
        fd = self._sum_fds[index]

        @cache  # a board has one writer, which this worker's roles share
        def open_for(num_parameters: int) -> BoardContributionWriter:
            nbytes = contribution_bytes(num_parameters)
            writer = ShmBoardWriter(fd, nbytes, sum_name(index))
            return BoardContributionWriter(writer, ShmBoardReader(fd))

        return open_for

    def _open_reduce(self) -> GlooReduce | None:
        """This worker's end of the all-reduce, where there is one."""
        if self._total_fd is None:
            return None
        # It rings from a thread of its own, which needs bells of its own.
        bell = Control(self._program, self._control.segment).bells[self._worker]
        # A rank that hangs is killed after half of it, which ends the collective at once.
        timeout_s = 2 * self._spec.config.supervise.heartbeat_timeout_s
        self._reduce = GlooReduce(self._total_fd, timeout_s, bell.ring)
        return self._reduce

    def _make_adding(self, receiver: Receiver, rule: GatherRule, num_parameters: int) -> Adding:
        contributions = BoardContributionReader([ShmBoardReader(fd) for fd in self._sum_fds])
        at_learner = AtLearner(rule, contributions, len(self._sum_fds), num_parameters)
        reduce = self._open_reduce()
        if reduce is None:
            return at_learner
        rows = [self._control.gauges.rows[role.name] for role in self._program.of_kind("actor")]
        return AllReduced(rule, at_learner, reduce, rows, receiver.wake_senders)

    def _bell(self, spans: Spans | None) -> Bell:
        """This worker's own."""
        bell = self._control.bells[self._worker]
        return bell if spans is None else trace_bell(bell, spans)

    def _run_evaluator(self, reports: Reports) -> None:
        row = self._control.gauges.rows[self._worker]
        spans = spans_of(self._spec, self._worker)
        policy = ShmBoardReader(self._policy_fd)
        evaluator = build_evaluator(self._spec, policy, row, reports, spans)
        bell, is_over = self._bell(spans), self._control.is_stopping
        run_loop(lambda: timed_tick(evaluator, row), [row], bell, is_over)
        evaluator.close()

    def _run_learner_side(self, reports: Reports, resume: bool, is_restart: bool) -> None:
        control = self._control
        actor_bells = [control.bells[role.worker] for role in self._program.of_kind("actor")]
        boards: list[ShmBoardWriter] = []

        def make_policy(nbytes: int) -> ShmBoardWriter:
            boards.append(ShmBoardWriter(self._policy_fd, nbytes))
            return boards[0]

        receiver = ShmReceiver(self._stream, actor_bells)
        side = LearnerSide(
            self._spec,
            receiver,
            make_policy,
            partial(self._make_adding, receiver),
            control.gauges,
            reports,
            actor_states=lambda: None,
        )
        highest = boards[0].version()
        if resume or (is_restart and list_checkpoints(self._spec.run_dir)):
            side.resume(highest)
        else:
            side.continue_at(highest + 1)  # 0, unless one died before its first checkpoint
            if is_restart:
                reports(begun_anew_report(side.learner.version))
        if resume:
            reports(Report(kind="note", text=NEW_EPISODES))
        if is_restart and receiver.kept:
            reports(Report(kind="note", text=KEPT_STORE.format(count=len(receiver.kept))))
        if is_restart:
            side.progress.wall_before_s = control.words[Word.WALL_BEFORE_NS] / 1e9
        control.words[Word.WALL_BEFORE_NS] = int(side.progress.wall_before_s * 1e9)
        side.start()
        for bell in control.bells.values():
            bell.ring()  # the first policy is there
        because = self._loop(side)
        told = control.words[Word.STOP]
        record = side.close(save=told < Stop.NOW)
        reports(Report(kind="done", because=because, record=record))

    def _loop(self, side: LearnerSide) -> str:
        control = self._control
        reasons: list[str] = []
        patience = Patience()

        def is_over() -> bool:
            told = control.words[Word.STOP]
            if patience.is_spent(told) and not side.learner.is_between_versions:
                side.cut_short()
            if told == Stop.NOW or (told and side.learner.is_between_versions):
                reasons.append("interrupted")
            elif (because := side.stop_reason()) is not None:
                reasons.append(because)
            return bool(reasons)

        rows = [control.gauges.rows["buffer"], control.gauges.rows["learner"]]
        run_loop(side.tick, rows, self._bell(side.spans), is_over, lambda: side.due_ns)
        return reasons[0]


NEW_EPISODES = "All environments begin new episodes; counters, schedules and versions continue."
KEPT_STORE = (
    "The replay store is still in shared memory, with {count:,} unrolls, and is used again."
)
