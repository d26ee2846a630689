"""Several groups in one process, which take turns. Serial training, bit-reproducible.

In each turn a group does what the inline engine does at once: an update, a mix, a version, or a
step of its actors. Groups whose batches have the same number of minibatches stay in step, so that
they mix the same states.

Learners that add up their gradients wait for each other in the middle of a turn. Each has a thread,
of which one runs at a time, in an order that does not depend on the system (channels/peers/turns).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from tianji.channels.inproc import InprocBoard
from tianji.channels.orders import Stop
from tianji.channels.peers.inproc import InprocTeam
from tianji.channels.peers.turns import Turns
from tianji.checkpoint.sets import SavedGroups
from tianji.config.plan import RunPlan
from tianji.config.run import adds_gradients, team_of
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
        self._turns = Turns(len(plans))
        self._teams: dict[tuple[int, ...], InprocTeam] = {}
        """Learners that add up their gradients, by their numbers."""
        if adds_gradients(spec.config):
            timeout_s = 2 * spec.config.supervise.heartbeat_timeout_s
            teams = {team_of(learner, spec.config) for learner in range(len(plans))}
            self._teams = {t: InprocTeam(len(t), timeout_s, self._turns, t) for t in teams}
        self._because: StoppedBecause | None = None
        """Why the run is over."""
        self.groups = [
            InlineEngine(
                group_spec,
                group_program(group_spec.config, group_spec.plan, group_spec.group),
                self._head.observer_of(group_spec.group),
                peers,
                self._teams.get(team_of(group_spec.group, spec.config)),
            )
            for group_spec in group_specs(spec, plans, saved)
        ]

    def run(self, stop: StopRequest, resume: bool) -> Outcome:
        if self._teams:
            return self._run_together(stop, resume)
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

    def _run_together(self, stop: StopRequest, resume: bool) -> Outcome:
        """Run each learner with its actors on a thread of its own."""
        ended: dict[int, Outcome] = {}
        errors: list[BaseException] = []

        def run(group: int) -> None:
            try:
                with self._turns.of(group), arithmetic_of_a_run():
                    try:
                        ended[group] = self._run_group(group, stop, resume)
                    except BaseException:
                        for team in self._teams.values():  # the others end too
                            team.leave()
                        raise
            except BaseException as error:  # noqa: BLE001 - it is raised in the caller's thread
                errors.append(error)

        threads = [
            threading.Thread(target=run, args=[group], daemon=True)
            for group in range(len(self.groups))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        assert self._because is not None, "a group ends for a reason"
        return self._head.outcome(self._because, ended)

    def _run_group(self, group: int, stop: StopRequest, resume: bool) -> Outcome:
        engine = self.groups[group]
        try:
            engine.roles.start(resume)
            own = None
            while own is None:
                self._because = self._because or self._head.look()
                level = Stop.NO if self._because is None else Stop.FINISH
                engine.roles.tell_other_steps(self._head.steps.others(group))
                own = engine.turn(max(level, stop.level))
                if len(self._teams) > 1:  # those of one team wait for each other in every update
                    self._turns.give_way(group)
            self._because = self._because or own
            return engine.roles.end(own, save=stop.level < Stop.NOW)
        finally:
            engine.roles.close()

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
