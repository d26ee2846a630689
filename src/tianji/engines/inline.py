"""The inline engine: every role in this process, in turn. Serial training, bit-reproducible.

The learner's side goes first and the actors step only when it has nothing to do, so every item is
used by the version that made it: this is what the other engines are compared with.
"""

from __future__ import annotations

from typing import Any

import torch

from tianji.actor.role import Actor
from tianji.channels.gauges import Gauges
from tianji.channels.inproc import InprocBoard, InprocStream
from tianji.channels.layout import Layout
from tianji.engines.build import build_actor, build_evaluator, spans_of
from tianji.engines.control import Stop
from tianji.engines.interface import Observer, Outcome, Report
from tianji.engines.learner_side import LearnerSide
from tianji.engines.loop import timed_tick
from tianji.engines.signals import StopRequest
from tianji.engines.spec import RunSpec
from tianji.evaluator.role import Evaluator
from tianji.programs.program import Program


class InlineEngine:
    """Runs a program in the calling process and thread."""

    def __init__(self, spec: RunSpec, program: Program, observer: Observer) -> None:
        plan = spec.plan
        self._threads = plan.learner_threads
        self._observer = observer
        self._gauges = gauges = Gauges(tuple(role.name for role in program.roles))
        stream = InprocStream(Layout.from_json(plan.layout), plan.num_slots, plan.num_actors)
        boards: list[InprocBoard] = []

        def make_policy(nbytes: int) -> InprocBoard:
            boards.append(InprocBoard(nbytes))
            return boards[0]

        self._actors: list[Actor] = []
        self._side = LearnerSide(
            spec, stream, make_policy, gauges, observer.report, self._actor_states
        )
        for i in range(plan.num_actors):
            name = f"actor-{i}"
            row, spans = gauges.rows[name], spans_of(spec, name)
            self._actors.append(build_actor(spec, i, stream.sender(i), boards[0], row, spans))
        self._evaluators: dict[str, Evaluator] = {}
        for role in program.of_kind("evaluator"):
            row, spans = gauges.rows[role.name], spans_of(spec, role.name)
            evaluator = build_evaluator(spec, boards[0], row, observer.report, spans)
            self._evaluators[role.name] = evaluator

    def run(self, stop: StopRequest, resume: bool) -> Outcome:
        side = self._side
        if resume:
            self._resume_actors(side.resume(highest_version=-1))
        side.start()
        self._observer.watch(self._gauges)
        callers_threads = torch.get_num_threads()
        try:
            because = self._loop(stop)
            record = side.close(save=stop.level < Stop.NOW)
        finally:
            _use_threads(callers_threads)
            for actor in self._actors:
                actor.close()
            for evaluator in self._evaluators.values():
                evaluator.close()
        return Outcome(
            because=because,
            record=record,
            restarts=0,
            first_cause=None,
        )

    def _loop(self, stop: StopRequest) -> str:
        side = self._side
        while True:
            _use_threads(self._threads)
            worked = side.tick()
            if side.learner.is_between_versions:
                if stop.level > Stop.NO:
                    return "interrupted"
                if (because := side.stop_reason()) is not None:
                    return because
            if stop.level == Stop.NOW:
                return "interrupted"
            self._observer.tick()
            if worked:
                continue
            _use_threads(1)
            moved = [
                timed_tick(actor, self._gauges.rows[f"actor-{i}"])
                for i, actor in enumerate(self._actors)
            ]
            for name, evaluator in self._evaluators.items():
                timed_tick(evaluator, self._gauges.rows[name])
            assert any(moved), "no role has anything to do: the balance is wrong"

    def _actor_states(self) -> dict[str, Any] | None:
        states = {f"actor-{i}": actor.state() for i, actor in enumerate(self._actors)}
        return None if None in states.values() or not states else states

    def _resume_actors(self, states: dict[str, Any] | None) -> None:
        if states is None:
            self._observer.report(Report(kind="note", role="actor", text=NEW_EPISODES))
            return
        for index, actor in enumerate(self._actors):
            actor.load_state(states[f"actor-{index}"])


def _use_threads(count: int) -> None:
    """What the plan gives to the side that works now, as in the other engines."""
    if torch.get_num_threads() != count:
        torch.set_num_threads(count)


NEW_EPISODES = (
    "The environments do not offer their state, so all of them begin new episodes; everything else "
    "continues where it was."
)
