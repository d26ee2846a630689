"""A worker's roles on the shared memory that it inherited."""

from __future__ import annotations

from typing import Any

from tianji.channels.board import ShmBoardReader, ShmBoardWriter
from tianji.channels.layout import Layout
from tianji.channels.memory import Bell, Segment
from tianji.channels.shm import ShmReceiver, ShmSender, StreamMemory
from tianji.checkpoint.load import list_checkpoints
from tianji.engines.build import build_actor, build_evaluator, spans_of
from tianji.engines.control import Control, Stop, Word
from tianji.engines.interface import Report, Reports
from tianji.engines.learner_side import LearnerSide
from tianji.engines.loop import run_loop, timed_tick
from tianji.engines.spec import RunSpec
from tianji.programs.program import tianji
from tianji.trace.parts import trace_bell
from tianji.trace.spans import Spans


class Attachment:
    """The segments of the run, seen from one worker."""

    def __init__(self, spec: RunSpec, fds: dict[str, int], worker: str) -> None:
        plan = spec.plan
        self._spec = spec
        self._worker = worker
        self._program = tianji(spec.config, plan)
        self._control = Control(self._program, Segment.attach(fds["control"]))
        self._policy_fd = fds["policy"]
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
            self._run_actor()
        elif kind == "evaluator":
            self._run_evaluator(reports)
        else:
            self._run_learner_side(reports, resume, is_restart)

    def _run_actor(self) -> None:
        control = self._control
        index = int(self._worker.removeprefix("actor-"))
        row = control.gauges.rows[self._worker]
        spans = spans_of(self._spec, self._worker)
        actor = build_actor(
            self._spec,
            index,
            ShmSender(self._stream, index, control.bells["learner"]),
            ShmBoardReader(self._policy_fd),
            row,
            spans,
        )
        bell = self._bell(spans)
        run_loop(lambda: timed_tick(actor, row), [row], bell, control.is_stopping)
        actor.close()

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

        side = LearnerSide(
            self._spec,
            ShmReceiver(self._stream, actor_bells),
            make_policy,
            control.gauges,
            reports,
            actor_states=lambda: None,
        )
        highest = boards[0].version()
        if resume or (is_restart and list_checkpoints(self._spec.run_dir)):
            side.resume(highest)
        else:
            side.continue_at(highest + 1)  # 0, unless one died before its first checkpoint
            highest = -1
        if resume or is_restart:
            reports(_resume_note(side.learner.version, highest, is_restart))
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

        def is_over() -> bool:
            told = control.words[Word.STOP]
            if told == Stop.NOW or (told and side.learner.is_between_versions):
                reasons.append("interrupted")
            elif (because := side.stop_reason()) is not None:
                reasons.append(because)
            return bool(reasons)

        rows = [control.gauges.rows["buffer"], control.gauges.rows["learner"]]
        run_loop(side.tick, rows, self._bell(side.spans), is_over)
        return reasons[0]


def _resume_note(version: int, highest: int, is_restart: bool) -> Any:
    if not is_restart:
        text = "All environments begin new episodes; counters, schedules and versions continue."
        return Report(kind="note", text=text)
    if highest < 0:
        text = f"The learner begins anew as version {version}: it died before its first checkpoint."
        return Report(kind="note", text=text)
    return Report(
        kind="note",
        text=f"The learner was restored from its last checkpoint and continues as version "
        f"{version}; what it learned after that checkpoint is lost (up to version {highest}).",
    )
