"""The local engine: one process per worker, shared memory between them, this one supervises.

The supervisor does nothing in the data path. It starts the workers, sleeps until one of them says
something, ends or falls silent, or a person presses Ctrl-C, and does what is needed:

    an actor died        its lane is reset, a new one starts after a back-off; training goes on
    the learner died     a new one starts from the last checkpoint; the actors stay. An exception
                         in it ends the run: it would come again
    a role is silent     it is asked where it hangs (stack dump), killed, and replaced
    too many restarts    that actor is given up; without any actor, or learner, the run has failed.
                         Work refunds restarts (health.py)
"""

from __future__ import annotations

import math
import os
import selectors
import time
from collections import deque

from tianji.balance.lost_task import lost_task
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.layout import Layout
from tianji.channels.shm import StreamMemory
from tianji.config.machine import read_machine
from tianji.engines.control import Control, Stop
from tianji.engines.health import Health, Work, work_of_actor, work_of_learner
from tianji.engines.imbalance import Imbalances, Replan
from tianji.engines.interface import Observer, Outcome, Report
from tianji.engines.process import StartMessage, WorkerProcess
from tianji.engines.signals import StopRequest
from tianji.engines.spec import RunSpec
from tianji.programs.program import Program

TICK_S = 0.25
FINISH_S = 2.0
"""How long the version in work may take once a stop was asked for; saving it may take longer."""
GRACE_S = 1.5
"""How long workers may take to end by themselves once they are told to stop at once. With FINISH_S
before it and the summary after it, a stop is obeyed within five seconds."""
START_SLICE_S = 0.05
"""How long workers are started before the supervisor looks up: there may be thousands of them."""
ASLEEP_S = 5.0
"""A supervisor that did not look for so long was stopped itself (Ctrl-Z, a suspended machine)."""
STARTS_S = 60.0
"""A worker that starts loads libraries and shows no sign of life: it has at least so long."""


class LocalEngine:
    """Runs a program on this machine."""

    def __init__(
        self, spec: RunSpec, program: Program, observer: Observer, replan: Replan | None = None
    ) -> None:
        """replan: asked when an imbalance lasts; if it knows better, the run ends for that."""
        plan = spec.plan
        self._spec = spec
        self._program = program
        self._observer = observer
        layout = Layout.from_json(plan.layout)
        self._stream = StreamMemory.create(layout, plan.num_slots, plan.num_actors)
        self._control = Control.create(program)
        num_cores = len(read_machine().cores)
        self._imbalances = Imbalances(
            plan, num_cores, self._control.gauges, replan, pids=self._pids
        )
        # A board's writer gives it its size; a Reduce's ranks find each other through theirs.
        sizeless = [wire.name for wire in program.wires if wire.channel != "stream"]
        self._board_fds = {name: os.memfd_create(f"tianji-{name}") for name in sizeless}
        self._workers: dict[str, WorkerProcess] = {}
        self._pending = deque(sorted(program.workers(), key=lambda name: name != "learner"))
        """Not yet started for the first time."""
        self._finish_by_s = math.inf
        self._health = {worker: Health() for worker in program.workers()}
        self._selector = selectors.DefaultSelector()
        self._first_cause: str | None = None
        self._done: Report | None = None
        self._failed = False
        self._last_check_ns = self._awake_ns = time.monotonic_ns()

    def run(self, stop: StopRequest, resume: bool) -> Outcome:
        self._selector.register(stop.fd, selectors.EVENT_READ)
        self._observer.watch(self._control.gauges, self._pids())
        try:
            self._supervise(stop, resume)
            self._shut_down(stop)
        finally:
            for process in self._workers.values():
                process.send_kill()  # to all of them before any is waited for
            for process in self._workers.values():
                process.kill()
            self._selector.close()
            for fd in self._board_fds.values():
                os.close(fd)
            for segment in (self._stream.slots, self._stream.lanes, self._control.segment):
                segment.close()
        return self._outcome(stop)

    def _pids(self) -> dict[str, int]:
        return {name: process.pid for name, process in self._workers.items()}

    def _start(self, worker: str, resume: bool, is_restart: bool) -> None:
        plan = self._spec.plan
        message = StartMessage(
            worker=worker,
            spec=self._spec,
            threads=plan.learner_threads if worker == "learner" else plan.actor_threads,
            fds={
                "control": self._control.segment.fd,
                "slots": self._stream.slots.fd,
                "lanes": self._stream.lanes.fd,
                **self._board_fds,
            },
            resume=resume,
            is_restart=is_restart,
        )
        process = WorkerProcess.start(message)
        self._workers[worker] = process
        for row in self._rows(worker):
            row[Gauge.ACTIVITY] = Activity.STARTING
            row[Gauge.HEARTBEAT_NS] = time.monotonic_ns()
        row = self._rows(worker)[0]
        self._health[worker].begin(row[Gauge.ITEMS], row[Gauge.STEPS], time.monotonic())
        self._selector.register(process.report_fd, selectors.EVENT_READ, worker)
        self._selector.register(process.pid_fd, selectors.EVENT_READ, worker)
        self._observer.watch(self._control.gauges, self._pids())

    def _rows(self, worker: str) -> list[memoryview[int]]:
        names = [role.name for role in self._program.roles if role.worker == worker]
        return [self._control.gauges.rows[name] for name in names]

    def _supervise(self, stop: StopRequest, resume: bool) -> None:
        """Until the learner's side is done, the run has failed, or everything must stop now."""
        told = Stop.NO
        while self._done is None and not self._failed and not self._must_end(stop):
            self._start_pending(resume)
            for key, _ in self._selector.select(self._timeout_s()):
                if key.fd == stop.fd:
                    os.read(stop.fd, 64)
                else:
                    self._attend(key.data)
            if stop.level > told:
                told = stop.level
                self._finish_by_s = time.monotonic() + FINISH_S
                self._control.stop(told)
                self._observer.report(Report(kind="note", role="supervisor", text=FINISHING))
            self._start_due()
            self._check_heartbeats()
            self._check_balance()
            self._observer.tick()

    def _start_pending(self, resume: bool) -> None:
        """Start workers for a moment; none once the run is to stop."""
        until_s = time.monotonic() + START_SLICE_S
        while self._pending and not self._control.is_stopping():
            self._start(self._pending.popleft(), resume=resume, is_restart=False)
            if time.monotonic() > until_s:
                break

    def _must_end(self, stop: StopRequest) -> bool:
        """Whether to stop without waiting for the version in work any longer."""
        if stop.level == Stop.NOW:
            return True
        if stop.level == Stop.NO:
            return False
        if "learner" not in self._workers:  # nobody would say that it is done
            return True
        is_saving = self._control.gauges.rows["learner"][Gauge.ACTIVITY] == Activity.SAVING
        return time.monotonic() > self._finish_by_s and not is_saving

    def _check_balance(self) -> None:
        if (report := self._imbalances.look()) is not None:
            self._observer.report(report)
        if self._imbalances.is_replan_due and not self._control.is_stopping():
            self._control.stop(Stop.FINISH)

    def _timeout_s(self) -> float:
        if self._pending and not self._control.is_stopping():
            return 0.0
        due = [h.start_at_s for h in self._health.values() if h.start_at_s is not None]
        return max(0.0, min([TICK_S, *(at - time.monotonic() for at in due)]))

    def _attend(self, worker: str) -> None:
        process = self._workers.get(worker)
        if process is None:
            return
        has_ended = process.has_ended()  # before the pipe is read: its last words come first
        for report in process.read_reports():
            self._take(worker, report)
        if has_ended:
            self._on_end(worker, process)

    def _take(self, worker: str, report: Report) -> None:
        if report["kind"] == "done":
            self._done = report
            return
        health = self._health[worker]
        if report["kind"] == "error":
            health.last_error = report
        health.checkpoints += report["kind"] == "checkpoint_written"
        self._observer.report(report)

    def _on_end(self, worker: str, process: WorkerProcess) -> None:
        """A worker's process is gone; unless the run is over, that was not asked for."""
        self._selector.unregister(process.report_fd)
        self._selector.unregister(process.pid_fd)
        del self._workers[worker]
        process.close()
        if self._done is not None or self._control.is_stopping():
            if worker == "learner" and self._done is None:
                self._fail(worker, self._cause_of_end(worker, process))
            return
        self._recover(worker, self._cause_of_end(worker, process))

    def _cause_of_end(self, worker: str, process: WorkerProcess) -> str:
        cause = self._health[worker].last_error.get("text") or process.how_it_ended()
        return cause.rstrip(".")  # a sentence follows

    def _recover(self, worker: str, cause: str) -> None:
        health, supervise = self._health[worker], self._spec.config.supervise
        error, health.last_error = health.last_error, Report()
        health.fail(cause, self._work_of(worker))
        if worker == "learner" and error:
            self._fail(worker, cause)  # a new one would meet the same exception
            return
        if (why := health.why_hopeless(supervise.max_restarts)) is not None:
            self._give_up(worker, why)
            return
        wait_s = health.use_restart(supervise.backoff_s)
        health.start_at_s = time.monotonic() + wait_s
        text = f"{cause}. Restart {health.used} of {supervise.max_restarts}" + (
            f" in {wait_s:.1f} s." if wait_s else "."
        )
        self._observer.report(Report(kind="restart", role=worker, text=text))
        self._reset_lane(worker)

    def _work_of(self, worker: str) -> Work:
        """What a worker has done since its last start."""
        row, health = self._rows(worker)[0], self._health[worker]
        items = row[Gauge.ITEMS] - health.items_at_start
        if worker == "learner":
            return work_of_learner(items, health.checkpoints)
        life_s = row[Gauge.HEARTBEAT_NS] / 1e9 - health.started_s  # what came after it was silence
        return work_of_actor(items, row[Gauge.STEPS] - health.steps_at_start, life_s)

    def _reset_lane(self, worker: str) -> None:
        """Tell the buffer that whatever this actor held comes back."""
        if worker.startswith("actor-"):
            for row in (self._rows(worker)[0], self._control.gauges.rows["buffer"]):
                row[Gauge.LANE_RESETS] += 1
            self._control.bells["learner"].ring()

    def _give_up(self, worker: str, why: str) -> None:
        health = self._health[worker]
        text = f"{health.first_cause}. {why}"
        health.is_given_up = True
        self._rows(worker)[0][Gauge.ACTIVITY] = Activity.STOPPED
        self._reset_lane(worker)
        actors = self._program.of_kind("actor")
        left = [role.index for role in actors if not self._health[role.worker].is_given_up]
        self._observer.report(Report(kind="note", role=worker, text=text))
        if worker == "learner" or not left:
            self._fail(worker, text)
        elif task := lost_task(self._spec.config, left):
            self._fail(worker, f"{text} No actor of {task} is left.")

    def _fail(self, worker: str, cause: str) -> None:
        self._failed = True
        self._first_cause = self._first_cause or f"{worker}: {cause}"

    def _start_due(self) -> None:
        for worker, health in self._health.items():
            if health.start_at_s is not None and time.monotonic() >= health.start_at_s:
                self._start(worker, resume=False, is_restart=True)

    def _check_heartbeats(self) -> None:
        now_ns = time.monotonic_ns()
        if now_ns - self._last_check_ns > ASLEEP_S * 1e9:
            self._awake_ns = now_ns  # we were stopped ourselves: give the others time to be heard
        self._last_check_ns = now_ns
        for worker, process in list(self._workers.items()):
            row = self._rows(worker)[0]
            silent_s = (now_ns - max(row[Gauge.HEARTBEAT_NS], self._awake_ns)) / 1e9
            if silent_s <= self._silence_limit_s(worker) or process.is_killed:
                continue
            activity = Activity(row[Gauge.ACTIVITY]).name.lower()
            text = (
                f"no sign of life for {silent_s:.0f} s while {activity}; killed. If an "
                "environment step may take that long, raise supervise.heartbeat_timeout_s"
            )
            process.dump_stack()
            process.kill(text)

    def _silence_limit_s(self, worker: str) -> float:
        limit_s = self._spec.config.supervise.heartbeat_timeout_s
        starts = any(row[Gauge.ACTIVITY] == Activity.STARTING for row in self._rows(worker))
        return max(limit_s, STARTS_S) if starts else limit_s

    def _shut_down(self, stop: StopRequest) -> None:
        """Ask the rest to end; kill what does not, after a while."""
        self._control.stop(Stop.NOW)
        deadline = time.monotonic() + GRACE_S
        while self._workers and time.monotonic() < deadline:
            for key, _ in self._selector.select(TICK_S):
                if key.fd == stop.fd:
                    os.read(stop.fd, 64)
                else:
                    self._attend(key.data)

    def _outcome(self, stop: StopRequest) -> Outcome:
        restarts = sum(health.restarts for health in self._health.values())
        record = self._done["record"] if self._done else {}
        if self._failed:
            because = "failed"
        elif self._done is not None:
            because = self._done["because"]
            if because == "interrupted" and stop.level == Stop.NO:
                because = "replan"  # nobody else has stopped it
        else:
            because = "interrupted" if stop.level > Stop.NO else "failed"
        return Outcome(
            because=because, record=record, restarts=restarts, first_cause=self._first_cause
        )


FINISHING = "Finishing the current version and saving. Press Ctrl-C again to stop at once."
