"""WorkerRun: runs the roles of one worker, in turns on one thread or on a thread each."""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tianji.actor.role import Actor
from tianji.buffer.interface import BufferEnd, Progress
from tianji.buffer.remote import RemoteBuffer, ServedBuffer, Told
from tianji.channels.gauges import Activity, Gauge, timed_tick
from tianji.channels.orders import Order, Stop
from tianji.channels.reports import Reports
from tianji.checkpoint.load import list_checkpoints
from tianji.engines.assembly.model import prepare_device, use_device
from tianji.engines.assembly.recording import REGISTER
from tianji.engines.assembly.roles import Roles
from tianji.engines.assembly.serving import build_server, served_by
from tianji.engines.assembly.wiring import SharedEnds
from tianji.engines.loop import run_loop
from tianji.engines.spec import RunSpec
from tianji.evaluator.role import Evaluator
from tianji.inference.role import InferenceServer
from tianji.learner.checkpoints import begun_anew_report
from tianji.learner.training import Training
from tianji.programs.program import ANSWERS, BATCHES, FEEDBACK, Program, Role
from tianji.records import StoppedBecause
from tianji.reports import DoneReport, Event
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
        self._program = program
        self._ends = ends
        self._held = program.roles_in(worker)
        (self._buffer,) = program.of_kind("buffer")
        (self._learner,) = program.of_kind("learner")
        self._has_learner = self._learner in self._held
        self._is_together = self._has_learner and self._buffer in self._held
        """Buffer and learner take turns."""
        assert not self._is_together or self._buffer.thread == self._learner.thread, (
            "buffer and learner of one worker share a thread"
        )
        acts = any(role.kind == "actor" for role in self._held)
        infers = any(role.kind == "inference" for role in self._held)
        self._uses_gpu = spec.plan.device != "cpu" and (
            self._has_learner or infers or (acts and spec.plan.acting_device != "cpu")
        )
        self._reports = reports
        self._roles = Roles(spec, program, ends, reports)
        self._remote: RemoteBuffer | None = None
        """The learner's end of a buffer in another worker."""

    def run(self, resume: bool, is_restart: bool) -> None:
        """resume: the run continues a former session. is_restart: it continues a worker that died
        in this one."""
        if self._uses_gpu:
            with self._roles.start_times.measure(REGISTER):
                prepare_device(self._spec, *self._ends.slots())
        parts: list[Part] = []
        for role in self._held:
            if role.kind == "actor":
                is_served = self._spec.plan.inference == "served"
                serve = served_by(self._ends, role) if is_served else None
                parts.append(self._alone(role, self._roles.actor(role, mends=True, serve=serve)))
            elif role.kind == "inference":
                spans = self._roles.open_spans(role)
                server = build_server(self._spec, self._program, self._ends, role, spans)
                parts.append(self._alone(role, server))
            elif role.kind == "evaluator":
                parts.append(self._alone(role, self._roles.evaluator(role)))
            elif role.kind == "buffer" and not self._has_learner:
                parts.append(self._serving(role, is_restart))
            elif role.kind == "learner":
                parts.append(self._training_part(role, self._begin(role, resume, is_restart)))
        if text := self._roles.start_times.in_words():
            self._reports(Event(kind="note", text=text))
        threads = sorted({part.role.thread for part in parts})
        of_thread = {n: [part for part in parts if part.role.thread == n] for n in threads}
        run_on_threads([self._loop(some) for some in of_thread.values()])
        self._roles.close()

    def _loop(self, parts: Sequence[Part]) -> Callable[[], None]:
        """Return the loop of these parts, which sleep on the bell of the first."""
        first = parts[0]
        bell, spans = self._ends.bell(first.role), self._roles.spans[first.role.name]
        traced = bell if spans is None else trace_bell(bell, spans)
        rows = [row for part in parts for row in part.rows]

        def loop() -> None:
            if self._uses_gpu:
                infers = any(part.role.kind == "inference" for part in parts)
                use_device(self._spec.plan.device, is_urgent=infers)
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

    def _alone(self, role: Role, made: Actor | InferenceServer | Evaluator) -> Part:
        """Return the part of a role that ends when it is told to."""
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

    def _serving(self, buffer: Role, is_restart: bool) -> Part:
        """Return the part of a buffer whose learner is in another worker and says when it ends."""
        ends, told, row = self._ends, Told(), self._ends.gauges.rows[buffer.name]
        served = ServedBuffer(
            self._roles.traced(self._roles.buffer(told, taker=buffer)),
            told,
            ends.message_sender(BATCHES, self._learner),
            ends.message_receiver(FEEDBACK),
            ends.message_sender(ANSWERS, self._learner),
        )
        self._tell_kept(is_restart)
        return Part(
            buffer,
            [row],
            tick=lambda: timed_tick(served, row),
            is_over=lambda: served.is_over,
            close=lambda: None,
            due_ns=lambda: served.due_ns,
        )

    def _training_part(self, learner: Role, training: Training) -> Part:
        """Return the part of the learner, with the buffer where that is here. It ends when the run
        has."""
        orders, group = self._ends.supervision.rows[learner.name], training.group
        reasons: list[StoppedBecause] = []

        def is_over() -> bool:
            if (because := training.ended(orders[Order.STOP])) is not None:
                reasons.append(because)
            return bool(reasons)

        is_together = self._is_together
        rows = (
            [group.gauges.buffer, group.gauges.learner] if is_together else [group.gauges.learner]
        )

        def show_life() -> None:
            for row in rows:
                row[Gauge.HEARTBEAT_NS] = time.monotonic_ns()

        def close() -> None:
            record = training.close(orders[Order.STOP] < Stop.NOW, show_life)
            self._reports(DoneReport(kind="done", because=reasons[0], record=record))
            if self._remote is not None:
                self._remote.end()

        tick = training.tick if is_together else training.tick_learner
        return Part(learner, rows, tick, is_over, close, lambda: training.due_ns)

    def _begin(self, role: Role, resume: bool, is_restart: bool) -> Training:
        """Build a group's training, bring it where it was, and publish its first version."""
        ends, reports = self._ends, self._reports
        training = self._roles.training(role, lambda: None, self._open_buffer)
        highest = ends.highest_version
        has_saved = self._spec.start_from is not None or list_checkpoints(self._spec.run_dir)
        if resume or (is_restart and has_saved):
            training.resume(highest)
        else:
            training.group.continue_at(highest + 1)  # 0, unless one died before any checkpoint
            if is_restart:
                reports(begun_anew_report(highest + 1))
        if resume:
            reports(Event(kind="note", text=NEW_EPISODES))
        row = ends.gauges.rows[role.name]
        if is_restart:
            self._tell_kept(is_restart)
            combination = training.group.learner.combination
            if combination is not None and combination.catch_up():
                reports(Event(kind="note", text=CAUGHT_UP))
            training.progress.wall_before_s = row[Gauge.WALL_BEFORE_NS] / 1e9
        row[Gauge.WALL_BEFORE_NS] = int(training.progress.wall_before_s * 1e9)
        training.start()
        ends.control.ring_all()  # the first policy is there
        return training

    def _tell_kept(self, is_restart: bool) -> None:
        if is_restart and self._spec.plan.replay_on_gpu:
            self._reports(Event(kind="note", text=LOST_STORE))
        elif is_restart and (kept := self._ends.steps_kept):
            self._reports(Event(kind="note", text=KEPT_STORE.format(count=kept)))

    def _open_buffer(self, progress: Progress) -> BufferEnd:
        """Open the learner's end of its buffer, which is here or in another worker."""
        ends, learner = self._ends, self._learner
        if self._buffer in self._held:
            return self._roles.buffer(progress, taker=learner)
        self._remote = RemoteBuffer(
            progress,
            ends.message_receiver(BATCHES),
            ends.message_sender(FEEDBACK, self._buffer),
            ends.message_receiver(ANSWERS),
            ends.bell(learner),
            ends.gauges.rows[learner.name],
        )
        return self._remote


NEW_EPISODES = "All environments begin new episodes; counters, schedules and versions continue."
CAUGHT_UP = "Its parameters are those of the other groups now; its optimiser's state is its own."
LOST_STORE = (
    "The replay store lay on the GPU and is gone with the learner's process: it is filled again."
)
KEPT_STORE = "The replay store is still in shared memory, with {count:,} steps, and is used again."


SWITCH_S = 2e-5
"""A thread that computes in Python gives way this soon: an actor whose environments are ready must
not wait for the learner, by default for 5 ms."""


def run_on_threads(loops: Sequence[Callable[[], None]]) -> None:
    """Run each on a thread of its own, a single one on this; raise the first exception of any."""
    if len(loops) == 1:
        loops[0]()
        return
    sys.setswitchinterval(SWITCH_S)
    ended: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def run(loop: Callable[[], None]) -> None:
        try:
            loop()
            ended.put(None)
        except BaseException as error:  # noqa: BLE001 - it is raised in the caller's thread
            ended.put(error)

    for loop in loops:
        threading.Thread(target=run, args=[loop], daemon=True).start()
    for _ in loops:
        if (error := ended.get()) is not None:
            raise error
