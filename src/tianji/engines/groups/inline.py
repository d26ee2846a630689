"""Several groups in one process, which take turns. Serial training, bit-reproducible.

In each turn a group does what the inline engine does at once: an update, a mix, a version, or a
step of its actors. Groups whose batches have the same number of minibatches stay in step, so that
they mix the same states.
"""

from __future__ import annotations

from collections.abc import Sequence

from tianji.channels.inproc import InprocBoard
from tianji.channels.orders import Stop
from tianji.checkpoint.sets import SavedGroups
from tianji.config.plan import RunPlan
from tianji.engines.arithmetic import arithmetic_of_a_run
from tianji.engines.groups.head import Head
from tianji.engines.groups.specs import group_specs
from tianji.engines.inline import InlineEngine
from tianji.engines.interface import Observer, Outcome
from tianji.engines.signals import StopRequest
from tianji.engines.spec import RunSpec
from tianji.programs.groups import group_program
from tianji.records import StoppedBecause


class InlineGroups:
    """Runs the groups in the calling process and thread."""

    def __init__(
        self,
        spec: RunSpec,
        plans: Sequence[RunPlan],
        saved: SavedGroups | None,
        observer: Observer,
    ) -> None:
        self._head = Head(spec, saved, observer)
        peers: dict[int, InprocBoard] = {}
        self.groups = [
            InlineEngine(
                group_spec,
                group_program(group_spec.config, group_spec.plan, group_spec.group),
                self._head.observer_of(group_spec.group),
                peers,
            )
            for group_spec in group_specs(spec, plans, saved)
        ]

    def run(self, stop: StopRequest, resume: bool) -> Outcome:
        for engine in self.groups:
            engine.roles.start(resume)
        try:
            with arithmetic_of_a_run():
                because = self._take_turns(stop)
                ended = {
                    group: engine.roles.end(because, save=stop.level < Stop.NOW)
                    for group, engine in enumerate(self.groups)
                }
        finally:
            for engine in self.groups:
                engine.roles.close()
        return self._head.outcome(because, ended)

    def _take_turns(self, stop: StopRequest) -> StoppedBecause:
        """Give each group its turn until the run is over; all end between two versions."""
        because: StoppedBecause | None = None
        going = set(range(len(self.groups)))
        while going:
            for group in sorted(going):
                self.groups[group].roles.tell_other_steps(self._head.steps.others(group))
                level = Stop.FINISH if because is not None else stop.level
                own = self.groups[group].turn(max(level, stop.level))
                if own is not None:
                    going.discard(group)
                    because = because or own
            because = because or self._head.look()
        assert because is not None, "a group ends for a reason"
        return because
