"""A program in one process: its roles over channels in ordinary memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tianji.channels.inproc import InprocBoard, InprocStream
from tianji.channels.orders import Order, Stop
from tianji.channels.peers.inproc import InprocTeam
from tianji.engines.arithmetic import arithmetic_of_a_run
from tianji.engines.assembly.gradients import gather_of
from tianji.engines.assembly.inproc_ends import InprocEnds
from tianji.engines.assembly.roles import Roles
from tianji.engines.interface import Observer, Outcome
from tianji.engines.signals import StopRequest
from tianji.engines.spec import RunSpec
from tianji.programs.program import Program
from tianji.records import StoppedBecause
from tianji.reports import Event
from tianji.types import Clock


class OneProcess:
    """The training, the actors and the evaluators, the latter two by name."""

    def __init__(
        self,
        spec: RunSpec,
        program: Program,
        observer: Observer,
        stream: InprocStream,
        make_board: Callable[[int], InprocBoard] = InprocBoard,
        now_ns: Clock = time.monotonic_ns,
        peers: dict[int, InprocBoard] | None = None,
        team: InprocTeam | None = None,
    ) -> None:
        """peers: the boards between groups, the same for all groups. team: the learners that add up
        their gradients."""
        self._observer = observer
        self._now_ns = now_ns
        gather = gather_of(spec)
        is_serial = spec.plan.lag_target == 0 or spec.config.engine == "inline"
        self._lost = LOST_EPISODES if is_serial else IN_THE_MIDDLE
        """Note of a resume about actors whose states were not saved."""
        if gather is not None:
            made_anew = MADE_ANEW if gather.fresh else NEW_EPISODES
            self._lost = made_anew if gather.rule == "every" else ""
        self._is_between = is_serial if gather is None else gather.rule != "every"
        """True where no actor has an unfinished item between two versions."""
        ends = InprocEnds(program, stream, make_board, peers, team)
        self._supervision = ends.supervision
        roles = Roles(spec, program, ends, observer.report, now_ns)
        self.gauges = ends.gauges
        (self._learner,) = (learner,) = program.of_kind("learner")
        self.side = roles.training(learner, self._actor_states)
        self.actors = {
            role.name: roles.actor(role, mends=False) for role in program.of_kind("actor")
        }
        self.evaluators = {
            role.name: roles.evaluator(role) for role in program.of_kind("evaluator")
        }
        if text := roles.start_times.in_words():
            observer.report(Event(kind="note", role=learner.name, text=text))

    def run(
        self,
        loop: Callable[[StopRequest], StoppedBecause],
        stop: StopRequest,
        resume: bool,
        settle: Callable[[], None] | None = None,
    ) -> Outcome:
        """Run from the first version to the last record. `loop` decides which role is next, and
        returns why it ended. settle: see Observer.watch."""
        self.start(resume, settle)
        try:
            with arithmetic_of_a_run():
                return self.end(loop(stop), save=stop.level < Stop.NOW)
        finally:
            self.close()

    def tell_other_steps(self, steps: int) -> None:
        """Tell the learner the environment steps of the run that other groups count."""
        self._supervision.post(self._learner.name, Order.OTHER_STEPS, steps)

    def end(self, because: StoppedBecause, save: bool) -> Outcome:
        """Write the last checkpoint and return the last record."""
        record = self.side.close(save)
        return Outcome(because=because, record=record, restarts=0, first_cause=None)

    def start(self, resume: bool, settle: Callable[[], None] | None = None) -> None:
        """Publish the first version, and let the observer watch."""
        if resume:
            self._resume_actors(self.side.resume(highest_version=-1))
        self.side.start()
        self._observer.watch(self.gauges, now_ns=self._now_ns, settle=settle)

    def close(self) -> None:
        for actor in self.actors.values():
            actor.close()
        for evaluator in self.evaluators.values():
            evaluator.close()

    def _actor_states(self) -> dict[str, Any] | None:
        if not self._is_between:
            return None
        states = {name: actor.state() for name, actor in self.actors.items()}
        return None if None in states.values() or not states else states

    def _resume_actors(self, states: dict[str, Any] | None) -> None:
        if states is not None:
            for name, actor in self.actors.items():
                actor.load_state(states[name])
        elif self._lost:
            self._observer.report(Event(kind="note", role="actor", text=self._lost))


LOST_EPISODES = (
    "The environments do not offer their state, so all of them begin new episodes; everything else "
    "continues where it was."
)
MADE_ANEW = (
    "Unfinished gradients are computed again at the newest version; everything else continues "
    "where it was."
)
NEW_EPISODES = (
    "The actors were in the middle of their gradients, so all environments begin new episodes, and "
    "actors with a replay memory of their own fill it again; everything else continues where it "
    "was."
)
IN_THE_MIDDLE = (
    "The actors were in the middle of their unrolls, so all environments begin new episodes; "
    "everything else continues where it was."
)
