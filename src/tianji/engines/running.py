"""How a worker runs the roles that it holds: in turns on one thread, or on a thread each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from tianji.buffer.interface import BufferRole
from tianji.channels.gauges import Activity, Gauge, Ticks, timed_tick
from tianji.channels.memory import Bell
from tianji.channels.orders import Order, Stop
from tianji.channels.reports import Report, Reports
from tianji.checkpoint.load import list_checkpoints
from tianji.engines.loop import run_loop
from tianji.engines.roles import Roles
from tianji.engines.spec import RunSpec
from tianji.engines.threads import LockedBuffer, run_on_threads
from tianji.engines.wiring import SharedEnds
from tianji.learner.group import Group
from tianji.learner.restored import begun_anew_report
from tianji.learner.training import Training
from tianji.programs.program import Program, Role
from tianji.trace.parts import trace_bell


class Part(Protocol):
    """One or more roles that a worker moves on together."""

    role: Role
    rows: list[memoryview[int]]
    """The gauges of its roles."""

    def tick(self) -> bool: ...

    @property
    def due_ns(self) -> int:
        """When there is something to do although nothing arrives; 0: never."""
        ...

    def is_over(self) -> bool: ...

    def close(self) -> None: ...


class Closing(Ticks, Protocol):
    """An actor or an evaluator."""

    @property
    def due_ns(self) -> int: ...

    def close(self) -> None: ...


class RolePart:
    """An actor or an evaluator. It ends as soon as it is told to stop."""

    def __init__(self, role: Role, made: Closing, row: memoryview[int], orders: memoryview[int]):
        self.role = role
        self.rows = [row]
        self._made = made
        self._row = row
        self._orders = orders

    def tick(self) -> bool:
        return timed_tick(self._made, self._row)

    @property
    def due_ns(self) -> int:
        return self._made.due_ns

    def is_over(self) -> bool:
        return self._orders[Order.STOP] != Stop.NO

    def close(self) -> None:
        self._made.close()


class BufferPart:
    """A buffer on a thread of its own, beside its learner's."""

    due_ns = 0

    def __init__(self, role: Role, group: Group, orders: memoryview[int]) -> None:
        self.role = role
        self.rows = [group.gauges.buffer]
        self.tick = group.tick_buffer
        self._orders = orders

    def is_over(self) -> bool:
        return self._orders[Order.STOP] != Stop.NO

    def close(self) -> None:
        """There is nothing to close: the learner saves the buffer's state."""


class TrainingPart:
    """A learner, with its buffer unless that has a thread of its own. It ends when the run has."""

    def __init__(
        self,
        role: Role,
        training: Training,
        tick: Callable[[], bool],
        orders: memoryview[int],
        reports: Reports,
    ) -> None:
        self.role = role
        self.tick = tick
        self._training = training
        self.rows = [training.group.gauges.learner]
        if tick == training.tick:
            self.rows.append(training.group.gauges.buffer)
        self._orders = orders
        self._reports = reports
        self._because = ""

    @property
    def due_ns(self) -> int:
        return self._training.due_ns

    def is_over(self) -> bool:
        self._because = self._training.ended(self._orders[Order.STOP]) or ""
        return self._because != ""

    def close(self) -> None:
        record = self._training.close(save=self._orders[Order.STOP] < Stop.NOW)
        self._reports(Report(kind="done", because=self._because, record=record))


class Turns:
    """Several parts on one thread. A part that is over is closed while the others go on."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = list(parts)

    def tick(self) -> bool:
        worked = False
        for part in self._parts:
            worked |= part.tick()
        return worked

    @property
    def due_ns(self) -> int:
        return min((part.due_ns for part in self._parts if part.due_ns), default=0)

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
        self,
        spec: RunSpec,
        program: Program,
        ends: SharedEnds,
        worker: str,
        reports: Reports,
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
        parts = self._build(resume, is_restart)
        if self._has_threads:
            run_on_threads([self._loop([part]) for part in parts])
        else:
            self._loop(parts)()
        self._roles.close()

    def _loop(self, parts: Sequence[Part]) -> Callable[[], None]:
        """Return the loop of these parts, which sleep on the bell of the first."""
        bell, spans = self._ends.bell(parts[0].role), self._roles.spans[parts[0].role.name]
        traced: Bell = bell if spans is None else trace_bell(bell, spans)
        rows = [row for part in parts for row in part.rows]

        def loop() -> None:
            if len(parts) > 1:
                turns = Turns(parts)
                run_loop(turns.tick, rows, traced, turns.is_over, lambda: turns.due_ns)
                return
            (part,) = parts
            run_loop(part.tick, rows, traced, part.is_over, lambda: part.due_ns)
            part.close()

        return loop

    def _build(self, resume: bool, is_restart: bool) -> list[Part]:
        parts: list[Part] = []
        for role in self._held:
            if role.kind == "actor":
                parts.append(self._alone(role, self._roles.actor(role, mends=True)))
            elif role.kind == "evaluator":
                parts.append(self._alone(role, self._roles.evaluator(role)))
            elif role.kind == "learner":
                parts.extend(self._training_parts(role, self._begin(role, resume, is_restart)))
        return parts

    def _alone(self, role: Role, made: Closing) -> RolePart:
        return RolePart(role, made, self._ends.gauges.rows[role.name], self._orders(role))

    def _orders(self, role: Role) -> memoryview[int]:
        return self._ends.supervision.rows[role.name]

    def _training_parts(self, learner: Role, training: Training) -> list[Part]:
        """Return one part for buffer and learner, or one each where they run on threads."""
        orders = self._orders(learner)
        if not self._has_threads:
            return [TrainingPart(learner, training, training.tick, orders, self._reports)]
        (buffer,) = (role for role in self._held if role.kind == "buffer")
        return [
            BufferPart(buffer, training.group, self._orders(buffer)),
            TrainingPart(learner, training, training.tick_learner, orders, self._reports),
        ]

    def _share_buffer(self, learner: Role) -> Callable[[BufferRole], BufferRole]:
        if not self._has_threads:
            return lambda buffer: buffer
        return lambda buffer: LockedBuffer(buffer, self._ends.bell(learner).ring)

    def _begin(self, role: Role, resume: bool, is_restart: bool) -> Training:
        """Build a group's training, bring it where it was, and publish its first version."""
        ends, reports = self._ends, self._reports
        training = self._roles.training(role, lambda: None, self._share_buffer(role))
        highest = ends.policy_reader().version()
        if resume or (is_restart and list_checkpoints(self._spec.run_dir)):
            training.resume(highest)
        else:
            training.group.continue_at(highest + 1)  # 0, unless one died before any checkpoint
            if is_restart:
                reports(begun_anew_report(highest + 1))
        if resume:
            reports(Report(kind="note", text=NEW_EPISODES))
        row = ends.gauges.rows[role.name]
        if is_restart:
            if kept := ends.num_kept:
                reports(Report(kind="note", text=KEPT_STORE.format(count=kept)))
            training.progress.wall_before_s = row[Gauge.WALL_BEFORE_NS] / 1e9
        row[Gauge.WALL_BEFORE_NS] = int(training.progress.wall_before_s * 1e9)
        training.start()
        ends.control.ring_all()  # the first policy is there
        return training


NEW_EPISODES = "All environments begin new episodes; counters, schedules and versions continue."
KEPT_STORE = (
    "The replay store is still in shared memory, with {count:,} unrolls, and is used again."
)
