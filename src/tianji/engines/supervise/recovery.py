"""Recovery after a worker has ended: it is started again, given up, or the run fails.

an actor died        its lane is reset, and a new one starts after a back-off; training goes on
the learner died     a new one starts from the last checkpoint; the actors stay. An exception
                     in it ends the run: it would come again. If the buffer has a worker of its own,
                     both workers start again when one of them died
too many restarts    that worker is given up; without any actor, or without the learner, the run
                     has failed. Work refunds restarts (watched.py)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from tianji.balance.lost_task import lost_task
from tianji.channels.orders import Control, Order
from tianji.config.run import RunConfig
from tianji.engines.interface import Observer
from tianji.engines.supervise.watched import WatchedWorker
from tianji.programs.program import Program
from tianji.reports import Event

TOGETHER = " Actors and learner share that process and start again together, with new episodes."


class Recovery:
    """Decides; whoever owns the workers starts those that are due."""

    def __init__(
        self,
        config: RunConfig,
        program: Program,
        control: Control,
        workers: Mapping[str, WatchedWorker],
        observer: Observer,
    ) -> None:
        self._config = config
        self._control = control
        self._workers = workers
        self._observer = observer
        (self._buffer,) = program.of_kind("buffer")
        self._buffer_bell = control.bell(program.bells()[self._buffer.name])
        self._resetting = threading.Lock()
        """Lanes of actors on other hosts are reset by the thread of the gateway."""
        self._elsewhere = {
            role.index: role.name for role in program.of_kind("actor") if role.host != program.here
        }
        self._has_learner = any(worker.has_learner for worker in workers.values())
        self.has_failed = False
        self.first_cause: str | None = None

    def after_end(self, worker: WatchedWorker, cause: str) -> None:
        """Deal with a worker whose process ended without being asked to."""
        health, supervise = worker.health, self._config.supervise
        error, health.last_error = health.last_error, None
        health.fail(cause, worker.work())
        if worker.trains and error:
            self.fail(worker, cause)  # a new one would meet the same exception
            return
        if (why := health.why_hopeless(supervise.max_restarts)) is not None:
            self._give_up(worker, why)
            return
        wait_s = health.use_restart(supervise.backoff_s)
        health.start_at_s = time.monotonic() + wait_s
        text = f"{cause}. {health.count_in_words(supervise.max_restarts)}" + (
            f" in {wait_s:.1f} s." if wait_s else "."
        )
        if worker.trains and worker.actors:
            text += TOGETHER
        restart = Event(kind="restart", role=worker.name, text=text)
        restart["stops_learner"], restart["stops_actors"] = worker.trains, bool(worker.actors)
        self._observer.report(restart)
        self._reset_lanes(worker)

    def start_together(self, partner: WatchedWorker, worker: WatchedWorker) -> None:
        """Start a worker that was ended because of another one, when that one starts again."""
        partner.health.start_at_s = worker.health.start_at_s
        text = f"It was ended because it cannot continue without {worker.name}; both start again."
        self._observer.report(Event(kind="note", role=partner.name, text=text))

    def due(self) -> list[str]:
        """Return the workers to start again now."""
        now_s = time.monotonic()
        starts = ((name, worker.health.start_at_s) for name, worker in self._workers.items())
        return [name for name, at_s in starts if at_s is not None and now_s >= at_s]

    def next_start_s(self) -> float | None:
        """Return when the next worker is to be started again (time.monotonic)."""
        starts = (worker.health.start_at_s for worker in self._workers.values())
        return min((at_s for at_s in starts if at_s is not None), default=None)

    def _reset_lanes(self, worker: WatchedWorker) -> None:
        """Tell the buffer that whatever these actors held comes back."""
        for actor in worker.actors:
            self._reset_lane(actor.name, None)

    def lose_actor(self, index: int, resets: int | None) -> None:
        """Deal with an actor on another host that is gone; that host or another starts it again.

        resets: how many processes have run it before; None: its host is gone, and what was in the
        memory there."""
        actor, supervision = self._elsewhere[index], self._control.supervision
        if resets is None:
            after = supervision.rows[actor][Order.RESETS] + 1
            supervision.post(actor, Order.SUM_LOST, after)
        self._reset_lane(actor, resets)

    def _reset_lane(self, actor: str, resets: int | None) -> None:
        supervision = self._control.supervision
        with self._resetting:
            before = supervision.rows[actor][Order.RESETS]
            after = before + 1 if resets is None else max(before, resets)
            supervision.post(actor, Order.RESETS, after)
            total = supervision.rows[self._buffer.name][Order.RESETS] + after - before
            supervision.post(self._buffer.name, Order.RESETS, total)
            self._buffer_bell.ring()

    def _give_up(self, worker: WatchedWorker, why: str) -> None:
        text = f"{worker.health.first_cause}. {why}"
        worker.give_up()
        for actor in worker.actors:
            self._control.supervision.post(actor.name, Order.GIVEN_UP, 1)
        self._reset_lanes(worker)
        self._observer.report(Event(kind="note", role=worker.name, text=text))
        left = self._actors_left()
        if worker.trains or worker.serves or not left:
            self.fail(worker, text)
        elif task := lost_task(self._config, left):
            self.fail(worker, f"{text} No actor of {task} is left.")

    def _actors_left(self) -> list[int]:
        """Return the actors that were not given up, those on other hosts too."""
        workers = (worker for worker in self._workers.values() if not worker.health.is_given_up)
        left = [actor.index for worker in workers for actor in worker.actors]
        if self._has_learner:
            rows = self._control.supervision.rows
            elsewhere = self._elsewhere.items()
            left += [index for index, name in elsewhere if not rows[name][Order.GIVEN_UP]]
        return left

    def check_actors(self) -> None:
        """Fail where no actor is left: those on other hosts may have been given up since."""
        if not self._actors_left():
            self.has_failed = True
            causes = (worker.health.first_cause for worker in self._workers.values())
            here = next((f": {cause}" for cause in causes if cause), "")
            text = f"All actors were given up, here and on other hosts{here}"
            self.first_cause = self.first_cause or text

    def fail(self, worker: WatchedWorker, cause: str) -> None:
        """The run cannot go on. The first cause is the one that counts."""
        self.has_failed = True
        self.first_cause = self.first_cause or f"{worker.name}: {cause}"

    def fail_without(self, host: str) -> None:
        """The actors here are of no use: the host of their learner is gone."""
        self.has_failed = True
        self.first_cause = self.first_cause or f"The connection with {host} is lost"

    @property
    def restarts(self) -> int:
        return sum(worker.health.restarts for worker in self._workers.values())
