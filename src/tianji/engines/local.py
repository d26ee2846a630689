"""The local engine: one process per worker, shared memory between them, this one supervises.

The supervisor does nothing in the data path. It starts the workers and sleeps until one of them
reports, ends or falls silent, or a person presses Ctrl-C. A worker that has ended is started again
(supervise/recovery.py); one that is silent prints where it hangs, is killed, and is replaced.
"""

from __future__ import annotations

import math
import os
import selectors
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from tianji.channels.gauges import Activity, Gauge
from tianji.channels.orders import Order, Stop
from tianji.engines.assembly.wiring import SharedMemory
from tianji.engines.interface import Neighbours, Observer, Outcome
from tianji.engines.signals import StopRequest
from tianji.engines.spec import RunSpec
from tianji.engines.supervise.imbalance import Imbalances, Replan
from tianji.engines.supervise.process import StartMessage, WorkerProcess, encode_run
from tianji.engines.supervise.recovery import Recovery
from tianji.engines.supervise.stacks import hangs_in_words
from tianji.engines.supervise.watched import WatchedWorker
from tianji.errors import TianjiError
from tianji.programs.groups import in_group
from tianji.programs.program import Program
from tianji.records import StoppedBecause
from tianji.reports import DoneReport, Event, Report

if TYPE_CHECKING:
    from tianji.gateways.gateway import Gateway
    from tianji.gateways.ports.actors_elsewhere import OnLost

Connect: TypeAlias = "Callable[[SharedMemory, OnLost], Gateway]"
"""Makes the gateway of this host on its shared memory. OnLost is told of actors elsewhere."""
TICK_S = 0.25
FINISH_S = 2.0
"""Longest time for the version in work after a stop was asked for; saving it may take longer."""
GRACE_S = 1.5
"""Longest time for workers to end by themselves when they are told to stop at once. With FINISH_S
before it and the summary after it, a run stops within five seconds."""
START_SLICE_S = 0.05
"""Longest time spent on starting workers before the supervisor does its other work."""
ASLEEP_S = 5.0
"""A supervisor that did not look for this long was stopped itself (Ctrl-Z, a suspended machine)."""


class LocalEngine:
    """Runs a program on this machine."""

    def __init__(
        self,
        spec: RunSpec,
        program: Program,
        observer: Observer,
        replan: Replan | None = None,
        neighbours: Neighbours | None = None,
        connect: Connect | None = None,
    ) -> None:
        """replan: asked when an imbalance lasts; if it knows a better plan, the run ends for it.
        neighbours: the other groups, where the program is that of one group.
        connect: makes the gateway, where the group lives on several hosts."""
        self._spec = spec
        self._observer = observer
        self._neighbours = neighbours or Neighbours({}, lambda: 0)
        self._memory = SharedMemory.create(program, spec.plan, self._neighbours.boards)
        self._control = control = self._memory.control
        self._workers = {
            worker.name: WatchedWorker(worker, program.roles_in(worker.name), control.gauges)
            for worker in program.workers_here()
        }
        has_learner = (worker for worker in self._workers.values() if worker.has_learner)
        self._learner = next(has_learner, None)
        """None on a host with actors only."""
        self._learner_row = control.gauges.the("learner")
        self._recovery = Recovery(spec.config, program, control, self._workers, observer)
        self._gateway = (
            None if connect is None else connect(self._memory, self._recovery.lose_actor)
        )
        (self._learner_role,) = program.of_kind("learner")
        # The gauges of a group on several hosts show the processor times of all its roles.
        pids = self._pids if connect is None else dict
        self._imbalances = Imbalances(spec.plan, control.gauges, replan, pids=pids)
        self._encoded_run = encode_run(spec, program)
        self._pending = deque(
            sorted(self._workers, key=lambda name: not self._workers[name].trains)
        )
        """Not yet started for the first time, the learner and its buffer first."""
        self._finish_by_s = math.inf
        self._stop_level = Stop.NO
        """Urgency of the stop that the workers were told."""
        self._selector = selectors.DefaultSelector()
        self._done: DoneReport | None = None
        self._last_check_ns = self._awake_ns = time.monotonic_ns()

    def run(self, stop: StopRequest, resume: bool) -> Outcome:
        self._selector.register(stop.fd, selectors.EVENT_READ)
        self._observer.watch(self._control.gauges, self._pids())
        try:
            if self._gateway is not None:
                self._gateway.start()
            self._supervise(stop, resume)
            self._shut_down(stop)
        finally:
            if self._gateway is not None:
                self._gateway.close()
            running = self._running()
            for process in running:
                process.send_kill()  # to all of them before any is waited for
            for process in running:
                process.kill()
            self._selector.close()
            self._memory.close()
        return self._outcome(stop)

    def _running(self) -> list[WorkerProcess]:
        return [worker.process for worker in self._workers.values() if worker.process is not None]

    def _pids(self) -> dict[str, int]:
        workers = self._workers.items()
        return {name: worker.process.pid for name, worker in workers if worker.process is not None}

    def _supervise(self, stop: StopRequest, resume: bool) -> None:
        """Supervise until the learner is done, the run has failed, or everything must stop now."""
        while self._done is None and not self._recovery.has_failed and not self._must_end(stop):
            self._start_pending(resume)
            self._listen(stop, self._timeout_s())
            self._pass_on(stop)
            self._tell_other_steps()
            for name in self._recovery.due():
                self._start(self._workers[name], resume=False, is_restart=True)
            self._check_heartbeats()
            self._check_links()
            self._check_balance()
            self._observer.tick()

    def _tell_other_steps(self) -> None:
        steps = self._neighbours.other_steps()
        self._control.supervision.post(self._learner_role.name, Order.OTHER_STEPS, steps)

    # Starting workers.

    def _start_pending(self, resume: bool) -> None:
        """Start workers for a moment; none once the run is to stop."""
        until_s = time.monotonic() + START_SLICE_S
        while self._pending and self._stop_level == Stop.NO:
            self._start(self._workers[self._pending.popleft()], resume, is_restart=False)
            if time.monotonic() > until_s:
                break

    def _start(self, worker: WatchedWorker, resume: bool, is_restart: bool) -> None:
        threads, fds = worker.worker.threads, self._memory.fds
        message = StartMessage(
            worker.name,
            self._encoded_run,
            threads,
            fds,
            resume=resume,
            is_restart=is_restart,
            shares_cores=self._spec.plan.shares_cores,
            shown_as=in_group(self._spec.group, worker.name) if self._spec.has_head else "",
        )
        process = WorkerProcess.start(message)
        worker.begin(process)
        self._selector.register(process.report_fd, selectors.EVENT_READ, worker)
        self._selector.register(process.pid_fd, selectors.EVENT_READ, worker)
        self._observer.watch(self._control.gauges, self._pids())

    def _timeout_s(self) -> float:
        """Return how long there is nothing to do unless somebody reports."""
        if self._pending and self._stop_level == Stop.NO:
            return 0.0
        next_start_s = self._recovery.next_start_s()
        if next_start_s is None:
            return TICK_S
        return max(0.0, min(TICK_S, next_start_s - time.monotonic()))

    # Listening to them.

    def _listen(self, stop: StopRequest, timeout_s: float) -> None:
        for key, _ in self._selector.select(timeout_s):
            if key.fd == stop.fd:
                os.read(stop.fd, 64)
            else:
                self._attend(key.data)

    def _attend(self, worker: WatchedWorker) -> None:
        process = worker.process
        if process is None:
            return
        has_ended = process.has_ended()  # before the pipe is read: its last words come first
        for report in process.read_reports():
            self._take(worker, report)
        if has_ended:
            self._on_end(worker, process)

    def _take(self, worker: WatchedWorker, report: Report) -> None:
        if report["kind"] == "done":
            self._done = report
            return
        if report["kind"] == "error":
            worker.health.last_error = report
        worker.health.checkpoints += report["kind"] == "checkpoint_written"
        self._observer.report(report)

    def _on_end(self, worker: WatchedWorker, process: WorkerProcess) -> None:
        """A worker's process is gone; unless the run is over, that was not asked for."""
        self._forget(worker, process)
        error = worker.health.last_error
        cause = (error["text"] if error else process.how_it_ended()).rstrip(".")
        if self._done is None and self._stop_level == Stop.NO:
            self._recovery.after_end(worker, cause)
            if worker.trains:
                self._end_partners(worker)
        elif self._done is None and worker.trains:
            self._recovery.fail(worker, cause)

    def _forget(self, worker: WatchedWorker, process: WorkerProcess) -> None:
        self._selector.unregister(process.report_fd)
        self._selector.unregister(process.pid_fd)
        worker.process = None
        process.close()

    def _end_partners(self, worker: WatchedWorker) -> None:
        """End what trains together with a worker that died, and let them start again together."""
        for partner in self._workers.values():
            if not partner.trains or (process := partner.process) is None:
                continue
            process.kill()
            for report in process.read_reports():
                self._take(partner, report)
            self._forget(partner, process)
            partner.health.last_error = None
            self._recovery.start_together(partner, worker)
        self._memory.empty_messages()

    def _check_heartbeats(self) -> None:
        now_ns = time.monotonic_ns()
        if now_ns - self._last_check_ns > ASLEEP_S * 1e9:
            self._awake_ns = now_ns  # we were stopped ourselves: give the others time to be heard
        self._last_check_ns = now_ns
        limit_s = self._spec.config.supervise.heartbeat_timeout_s
        for worker in self._workers.values():
            process = worker.process
            if process is None or process.is_killed:
                continue
            if (why := worker.silence(limit_s, self._awake_ns, now_ns)) is not None:
                stacks = process.ask_for_stack()
                unknown = "Its stack is in events.jsonl." if stacks else "It does not say where."
                where = hangs_in_words(stacks) or unknown
                event = Event(kind="silent", role=worker.name, text=where, traceback=stacks)
                self._observer.report(event)
                process.kill(why)

    def _check_links(self) -> None:
        """Fail without a gateway, without any actor, and where the learner cannot be reached."""
        if self._gateway is None:
            return
        if not self._gateway.is_running:
            raise TianjiError("The gateway between this host and others has ended; see above.")
        if self._learner is not None:
            self._recovery.check_actors()
            return
        for peer in self._gateway.gone():
            self._recovery.fail_without(peer)

    # Stopping.

    def _pass_on(self, stop: StopRequest) -> None:
        """Tell the workers to stop, if a person asks for it more urgently than before."""
        if stop.level > self._stop_level:
            self._finish_by_s = time.monotonic() + FINISH_S
            self._tell_to_stop(stop.level)
            if stop.note:
                self._observer.report(Event(kind="note", role="supervisor", text=stop.note))

    def _tell_to_stop(self, level: Stop) -> None:
        self._stop_level = level
        self._control.stop(level)

    def _check_balance(self) -> None:
        if self._learner is None:
            return
        if (report := self._imbalances.look()) is not None:
            self._observer.report(report)
        if self._imbalances.is_replan_due and self._stop_level == Stop.NO:
            self._tell_to_stop(Stop.FINISH)

    def _must_end(self, stop: StopRequest) -> bool:
        """Return whether to stop without waiting for the version in work any longer."""
        if stop.level == Stop.NOW:
            return True
        if stop.level == Stop.NO:
            return False
        if self._learner is None or self._learner.process is None:  # nobody says that it is done
            return True
        is_saving = self._learner_row[Gauge.ACTIVITY] == Activity.SAVING
        return time.monotonic() > self._finish_by_s and not is_saving

    def _shut_down(self, stop: StopRequest) -> None:
        """Ask the rest to end; kill what does not, after a while."""
        self._tell_to_stop(Stop.NOW)
        deadline = time.monotonic() + GRACE_S
        while self._running() and time.monotonic() < deadline:
            self._listen(stop, TICK_S)

    def _outcome(self, stop: StopRequest) -> Outcome:
        recovery = self._recovery
        because: StoppedBecause | Literal["replan"]
        if recovery.has_failed:
            because = "failed"
        elif self._done is not None:
            because = self._done["because"]
            if because == "interrupted" and stop.level == Stop.NO:
                because = "replan"  # nobody else has stopped it
        else:
            because = "interrupted" if stop.level > Stop.NO else "failed"
        return Outcome(
            because=because,
            record=self._done["record"] if self._done else None,
            restarts=recovery.restarts,
            first_cause=recovery.first_cause,
        )
