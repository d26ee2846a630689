"""All roles of a program in one process, over channels that the engine gives."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from tianji.actor.role import Actor
from tianji.channels.gauges import Gauges
from tianji.channels.inproc import InprocBoard, InprocStream
from tianji.engines.arithmetic import arithmetic_of_a_run
from tianji.engines.build import build_actor, build_evaluator, spans_of
from tianji.engines.control import Patience, Stop
from tianji.engines.gradients import InprocSums, gather_of
from tianji.engines.interface import Observer, Outcome, Report
from tianji.engines.learner_side import LearnerSide
from tianji.engines.signals import StopRequest
from tianji.engines.spec import RunSpec
from tianji.evaluator.role import Evaluator
from tianji.programs.program import Program
from tianji.types import Clock


class Together:
    """The learner's side, the actors and the evaluator, by their names."""

    def __init__(
        self,
        spec: RunSpec,
        program: Program,
        observer: Observer,
        stream: InprocStream,
        make_board: Callable[[int], InprocBoard],
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        self._observer = observer
        self._now_ns = now_ns
        self._patience = Patience()  # of a person, so never on a virtual clock
        gather = gather_of(spec)
        is_serial = spec.plan.lag_target == 0 or spec.config.engine == "inline"
        self._lost = LOST_EPISODES if is_serial else IN_THE_MIDDLE
        """What a resume says of actors whose states were not saved."""
        if gather is not None:
            self._lost = MADE_ANEW if gather.rule == "every" else ""
        self._is_between = is_serial if gather is None else gather.rule != "every"
        """When a version is made, no actor has anything in work that the next one needs."""
        self.gauges = gauges = Gauges(tuple(role.name for role in program.roles))
        boards: list[InprocBoard] = []

        def make_policy(nbytes: int) -> InprocBoard:
            boards.append(make_board(nbytes))
            return boards[0]

        sums = InprocSums(spec)
        self.actors: dict[str, Actor] = {}
        self.side = LearnerSide(
            spec,
            stream,
            make_policy,
            sums.make_adding,
            gauges,
            observer.report,
            self._actor_states,
            now_ns,
        )
        for role in program.of_kind("actor"):
            row, spans = gauges.rows[role.name], spans_of(spec, role.name)
            self.actors[role.name] = build_actor(
                spec,
                role.index,
                partial(stream.sender, role.index),
                sums.policy(boards[0], row),
                row,
                spans,
                now_ns,
                open_contributions=sums.open(role.index),
            )
        self.evaluators: dict[str, Evaluator] = {}
        for role in program.of_kind("evaluator"):
            row, spans = gauges.rows[role.name], spans_of(spec, role.name)
            self.evaluators[role.name] = build_evaluator(
                spec, boards[0], row, observer.report, spans, now_ns
            )

    def run(
        self,
        loop: Callable[[StopRequest], str],
        stop: StopRequest,
        resume: bool,
        settle: Callable[[], None] | None = None,
    ) -> Outcome:
        """From the first version to the last record; `loop` decides who is next, and says why it
        ended. settle: see Observer.watch."""
        self.start(resume)
        self._observer.watch(self.gauges, now_ns=self._now_ns, settle=settle)
        try:
            with arithmetic_of_a_run():
                because = loop(stop)
                record = self.side.close(save=stop.level < Stop.NOW)
        finally:
            self.close()
        return Outcome(because=because, record=record, restarts=0, first_cause=None)

    def ended(self, stop: StopRequest) -> str | None:
        """Why the run is over, if it is."""
        if self.side.learner.is_between_versions:
            if stop.level > Stop.NO:
                return "interrupted"
            if (because := self.side.stop_reason()) is not None:
                return because
        elif self._patience.is_spent(stop.level):
            self.side.cut_short()
        return "interrupted" if stop.level == Stop.NOW else None

    def start(self, resume: bool) -> None:
        if resume:
            self._resume_actors(self.side.resume(highest_version=-1))
        self.side.start()

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
            self._observer.report(Report(kind="note", role="actor", text=self._lost))


LOST_EPISODES = (
    "The environments do not offer their state, so all of them begin new episodes; everything else "
    "continues where it was."
)
MADE_ANEW = (
    "Unfinished gradients are computed again at the newest version; everything else continues "
    "where it was."
)
IN_THE_MIDDLE = (
    "The actors were in the middle of their unrolls, so all environments begin new episodes; "
    "everything else continues where it was."
)
