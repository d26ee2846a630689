"""WorkerRun: runs the roles of one worker, in turns on one thread or on a thread each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tianji.actor.role import Actor
from tianji.buffer.role import Buffer
from tianji.channels.gauges import Activity, Gauge, timed_tick
from tianji.channels.orders import Order, Stop
from tianji.channels.reports import Reports
from tianji.checkpoint.load import list_checkpoints
from tianji.engines.assembly.roles import Roles
from tianji.engines.assembly.wiring import SharedEnds
from tianji.engines.loop import run_loop
from tianji.engines.spec import RunSpec
from tianji.engines.threads import LockedBuffer, run_on_threads
from tianji.evaluator.role import Evaluator
from tianji.learner.restored import begun_anew_report
from tianji.learner.training import Training
from tianji.programs.program import Program, Role
from tianji.records import DoneReport, Event, StoppedBecause
from tianji.trace.parts import trace_bell


@dataclass(frozen=True, slots=True)
class Part:
    """One role, or a buffer with its learner, as the worker's loop sees it."""

    role: Role
    rows: Sequence[memoryview[int]]
    """The gauges of its roles."""
    tick: Callable[[], bool]
    is_over: Callable[[], bool]
    close: Callable[[], None]
    due_ns: Callable[[], int] = lambda: 0
    """Time of the next work that needs no arrival; 0: there is none."""


class Turns:
    """Several parts on one thread. A part that is over is closed while the others go on."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = list(parts)

    def tick(self) -> bool:
        worked = False
        for part in self._parts:
            worked |= part.tick()
        return worked

    def due_ns(self) -> int:
        return min(filter(None, (part.due_ns() for part in self._parts)), default=0)

    def is_over(self) -> bool:
        for part in tuple(self._parts):
            if part.is_over():
                self._parts.remove(part)
                part.close()
                for row in part.rows:
                    row[Gauge.ACTIVITY] = Activity.STOPPED
        return not self._parts


class WorkerRun:
    """A worker's roles on the shared memory that it has inherited."""

    def __init__(
        self, spec: RunSpec, program: Program, ends: SharedEnds, worker: str, reports: Reports
    ) -> None:
        self._spec = spec
        self._ends = ends
        self._has_threads = program.worker(worker).runs == "on threads"
        self._held = program.roles_in(worker)
        self._reports = reports
        self._roles = Roles(spec, program, ends, reports)

    def run(self, resume: bool, is_restart: bool) -> None:
        """resume: the run continues a former session. is_restart: it continues a worker that died
        in this one."""
        parts: list[Part] = []
        for role in self._held:
            if role.kind == "actor":
                parts.append(self._alone(role, self._roles.actor(role, mends=True)))
            elif role.kind == "evaluator":
                parts.append(self._alone(role, self._roles.evaluator(role)))
            elif role.kind == "learner":
                parts.extend(self._training_parts(role, self._begin(role, resume, is_restart)))
        if self._has_threads:
            run_on_threads([self._loop([part]) for part in parts])
        else:
            self._loop(parts)()
        self._roles.close()

    def _loop(self, parts: Sequence[Part]) -> Callable[[], None]:
        """Return the loop of these parts, which sleep on the bell of the first."""
        first = parts[0]
        bell, spans = self._ends.bell(first.role), self._roles.spans[first.role.name]
        traced = bell if spans is None else trace_bell(bell, spans)
        rows = [row for part in parts for row in part.rows]

        def loop() -> None:
            if len(parts) > 1:
                turns = Turns(parts)
                run_loop(turns.tick, rows, traced, turns.is_over, turns.due_ns)
            else:
                run_loop(first.tick, rows, traced, first.is_over, first.due_ns)
                first.close()

        return loop

    def _is_told_to_stop(self, role: Role) -> Callable[[], bool]:
        orders = self._ends.supervision.rows[role.name]
        return lambda: orders[Order.STOP] != Stop.NO

    def _alone(self, role: Role, made: Actor | Evaluator) -> Part:
        """Return the part of an actor or an evaluator, which ends when it is told to."""
        row, rank = self._ends.gauges.rows[role.name], self._roles.ranks.get(role.name)

        def tick_with_rank() -> bool:
            has_given = rank is not None and timed_tick(rank, row)
            return timed_tick(made, row) or has_given

        return Part(
            role,
            [row],
            tick=(lambda: timed_tick(made, row)) if rank is None else tick_with_rank,
            is_over=self._is_told_to_stop(role),
            close=made.close,
            due_ns=lambda: made.due_ns,
        )

    def _training_parts(self, learner: Role, training: Training) -> list[Part]:
        """Return one part for buffer and learner, or one each where they run on threads. The
        learner's ends when the run has."""
        orders, group = self._ends.supervision.rows[learner.name], training.group
        reasons: list[StoppedBecause] = []

        def is_over() -> bool:
            if (because := training.ended(orders[Order.STOP])) is not None:
                reasons.append(because)
            return bool(reasons)

        def close() -> None:
            record = training.close(save=orders[Order.STOP] < Stop.NOW)
            self._reports(DoneReport(kind="done", because=reasons[0], record=record))

        rest = is_over, close, lambda: training.due_ns
        if not self._has_threads:
            rows = [group.gauges.buffer, group.gauges.learner]
            return [Part(learner, rows, training.tick, *rest)]
        (buffer,) = (role for role in self._held if role.kind == "buffer")
        is_told = self._is_told_to_stop(buffer)
        return [
            Part(buffer, [group.gauges.buffer], group.tick_buffer, is_told, close=lambda: None),
            Part(learner, [group.gauges.learner], training.tick_learner, *rest),
        ]

    def _begin(self, role: Role, resume: bool, is_restart: bool) -> Training:
        """Build a group's training, bring it where it was, and publish its first version."""
        ends, reports = self._ends, self._reports
        training = self._roles.training(role, lambda: None, self._share_buffer(role))
        highest = ends.highest_version
        if resume or (is_restart and list_checkpoints(self._spec.run_dir)):
            training.resume(highest)
        else:
            training.group.continue_at(highest + 1)  # 0, unless one died before any checkpoint
            if is_restart:
                reports(begun_anew_report(highest + 1))
        if resume:
            reports(Event(kind="note", text=NEW_EPISODES))
        row = ends.gauges.rows[role.name]
        if is_restart:
            if kept := ends.steps_kept:
                reports(Event(kind="note", text=KEPT_STORE.format(count=kept)))
            training.progress.wall_before_s = row[Gauge.WALL_BEFORE_NS] / 1e9
        row[Gauge.WALL_BEFORE_NS] = int(training.progress.wall_before_s * 1e9)
        training.start()
        ends.control.ring_all()  # the first policy is there
        return training

    def _share_buffer(self, learner: Role) -> Callable[[Buffer], Buffer]:
        if not self._has_threads:
            return lambda buffer: buffer
        return lambda buffer: LockedBuffer(buffer, self._ends.bell(learner).ring)


NEW_EPISODES = "All environments begin new episodes; counters, schedules and versions continue."
KEPT_STORE = "The replay store is still in shared memory, with {count:,} steps, and is used again."
