"""Several groups, on this machine or on others: an engine for each, on a thread of this process.

The threads sleep until a worker reports. Everything they tell goes through one queue to the thread
that runs the head, so that logs and display have one writer. A group whose worker dies recovers by
itself; one that cannot is left out, and the run fails when none is left.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Sequence
from functools import partial

from tianji.channels.orders import Stop
from tianji.checkpoint.sets import SavedGroups
from tianji.config.plan import RunPlan
from tianji.config.run import team_of
from tianji.engines.agents.interface import RunLost, StartAgent
from tianji.engines.agents.remote import RemoteEngine
from tianji.engines.assembly.wiring import open_peer_boards
from tianji.engines.groups.head import Head
from tianji.engines.groups.observer import GroupObserver
from tianji.engines.groups.specs import group_specs
from tianji.engines.interface import Engine, Neighbours, Observer, Outcome
from tianji.engines.local import LocalEngine
from tianji.engines.signals import StopRequest
from tianji.engines.spec import RunSpec
from tianji.errors import UsageError
from tianji.programs.groups import group_program
from tianji.raised import error_in_words
from tianji.records import StoppedBecause

LOOK_S = 0.1
"""Longest time between two looks of the head."""


class LocalGroups:
    """Runs the groups of a run, each as if it were a run of its own."""

    def __init__(
        self,
        spec: RunSpec,
        plans: Sequence[RunPlan],
        saved: SavedGroups | None,
        observer: Observer,
        start_agent: StartAgent | None = None,
    ) -> None:
        """start_agent: starts an agent for a group; None: all groups run on this machine."""
        self._start_agent = start_agent
        self._config = spec.config
        self._head = Head(spec, saved, observer)
        self._boards = open_peer_boards(len(plans))
        self._left_out: set[int] = set()
        """Learners without which the run goes on."""
        self._told: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        """Calls of the head that the engines' threads have asked for."""
        self._engines = [self._build(group_spec) for group_spec in group_specs(spec, plans, saved)]
        self._stops = [StopRequest(notes={}) for _ in plans]
        self._asked = Stop.NO
        """How urgently all of them were asked to stop."""
        self._ended: dict[int, Outcome] = {}
        self._cannot_go_on: str | None = None
        """Why the run must end, where the failure of one group ends all."""

    def _build(self, spec: RunSpec) -> Engine:
        head, group = self._head, spec.group
        observer = GroupObserver(
            lambda report: self._told.put(partial(head.take, group, report)),
            lambda gauges, pids: self._told.put(partial(head.watch, group, gauges, pids)),
        )
        neighbours = Neighbours(self._boards, partial(head.steps.others, group))
        program = group_program(spec.config, spec.plan, group)
        if self._start_agent is None:
            return LocalEngine(spec, program, observer, neighbours=neighbours)
        return RemoteEngine(spec, program, observer, self._start_agent, neighbours)

    def run(self, stop: StopRequest, resume: bool) -> Outcome:
        threads = [
            threading.Thread(target=self._run_group, args=[group, resume], daemon=True)
            for group in range(len(self._engines))
        ]
        for thread in threads:
            thread.start()
        try:
            because = self._follow(stop)
        finally:
            self._raise_stops(Stop.NOW)  # only a third Ctrl-C or an error leaves any running
            for thread in threads:
                thread.join()
            for request in self._stops:
                request.close()
            for fd in self._boards.values():
                os.close(fd)
        outcome = self._head.outcome(because, self._ended)
        return {**outcome, "first_cause": self._cannot_go_on or outcome["first_cause"]}

    def _run_group(self, group: int, resume: bool) -> None:
        """Run on the group's thread."""
        try:
            outcome = self._engines[group].run(self._stops[group], resume)
        except Exception as error:  # noqa: BLE001 - it is told in the head's thread
            cause = error_in_words(error)
            if isinstance(error, UsageError | RunLost):
                cause = str(error)
                self._told.put(partial(self._give_up, cause))
            outcome = Outcome(because="failed", record=None, restarts=0, first_cause=cause)
        self._told.put(partial(self._on_end, group, outcome))

    def _give_up(self, cause: str) -> None:
        """End the run: a group was refused on its host, or a host that nothing replaces is lost."""
        self._cannot_go_on = self._cannot_go_on or cause

    def _on_end(self, group: int, outcome: Outcome) -> None:
        self._ended[group] = outcome
        self._head.leave_out(group)
        if outcome["because"] == "failed":
            self._leave_out(group, outcome["first_cause"])

    def _leave_out(self, learner: int, cause: str | None) -> None:
        """End those that make no update without a learner; tell of it if other groups go on."""
        team, each = team_of(learner, self._config), self._config.learners_per_group
        running = set(range(len(self._engines))) - self._ended.keys()
        for mate in running.intersection(team):
            if self._stops[mate].level == Stop.NO:
                self._stops[mate].raise_to(Stop.FINISH)
        left = len({other // each for other in running.difference(team)})
        if left and learner not in self._left_out and self._cannot_go_on is None:
            self._head.tell(LEFT_OUT.format(group=learner // each, cause=cause, left=left))
        self._left_out.update(team)

    def _follow(self, stop: StopRequest) -> StoppedBecause:
        """Follow the groups until all have ended; return why the run is over."""
        because: StoppedBecause | None = None
        while len(self._ended) < len(self._engines):
            self._hear()
            reached = self._head.look()
            if stop.level > self._asked:
                self._head.tell(stop.note)
                because = because or "interrupted"
                self._raise_stops(stop.level)
            if because is None:
                because = reached or self._ended_because()
                if self._cannot_go_on is not None:
                    because = "failed"
                if because is not None:
                    self._raise_stops(Stop.FINISH)
        return because or "failed"

    def _raise_stops(self, level: Stop) -> None:
        self._asked = max(self._asked, level)
        for group, request in enumerate(self._stops):
            if request.level < level and group not in self._ended:
                request.raise_to(level)

    def _hear(self) -> None:
        """Let the head take what the groups tell, for a moment."""
        try:
            self._told.get(timeout=LOOK_S)()
            while True:
                self._told.get_nowait()()
        except queue.Empty:
            return

    def _ended_because(self) -> StoppedBecause | None:
        """Return why a group ended by itself: the steps of the run are the only limit that a group
        knows. A group that failed is left out."""
        ended = {outcome["because"] for outcome in self._ended.values()}
        return "max_env_steps" if "max_env_steps" in ended else None


LEFT_OUT = (
    "Group {group} has failed: {cause}. The run goes on without it; groups left: {left}. "
    "`tianji resume` starts it again."
)
