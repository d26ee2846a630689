"""The inline engine: every role in this process, in turn. Serial training, bit-reproducible.

Buffer and learner go first, and the actors step only when those have nothing to do, so every item
is used by the version that made it: this is what the other engines are compared with. With a free
balance the actors make one round of unrolls before each version.
"""

from __future__ import annotations

from tianji.channels.gauges import Gauge, timed_tick
from tianji.channels.inproc import InprocBoard
from tianji.channels.orders import Stop
from tianji.channels.peers.inproc import InprocTeam
from tianji.engines.arithmetic import use_threads
from tianji.engines.assembly.inproc_ends import build_stream
from tianji.engines.interface import Observer, Outcome
from tianji.engines.one_process import OneProcess
from tianji.engines.signals import StopRequest
from tianji.engines.spec import RunSpec
from tianji.programs.program import Program
from tianji.records import StoppedBecause


class InlineEngine:
    """Runs a program in the calling process and thread."""

    def __init__(
        self,
        spec: RunSpec,
        program: Program,
        observer: Observer,
        peers: dict[int, InprocBoard] | None = None,
        team: InprocTeam | None = None,
    ) -> None:
        """peers: the boards between groups, where the program is that of one group. team: the
        learners that add up their gradients."""
        self._threads = spec.plan.learner_threads
        self._observer = observer
        self._is_free = spec.plan.balance == "free"
        self._round = spec.plan.unrolls_per_version
        self.roles = OneProcess(
            spec, program, observer, build_stream(spec.plan), peers=peers, team=team
        )

    def run(self, stop: StopRequest, resume: bool) -> Outcome:
        return self.roles.run(self._loop, stop, resume)

    def _loop(self, stop: StopRequest) -> StoppedBecause:
        while True:
            if (because := self.turn(stop.level)) is not None:
                return because

    def turn(self, stop: Stop) -> StoppedBecause | None:
        """Do what is next; return why the run is over, if it is."""
        training = self.roles.side
        learner = training.group.learner
        if self._is_free and learner.is_between_versions and not learner.waits_for_peers:
            self._make_round()
        use_threads(self._threads)
        worked = training.tick()
        if (because := training.ended(stop)) is not None:
            return because
        self._observer.tick()
        if not worked and not self._is_free and not learner.waits_for_peers:
            self._tick_actors()
        return None

    def _tick_actors(self) -> None:
        rows = self.roles.gauges.rows
        use_threads(1)
        moved = [timed_tick(actor, rows[name]) for name, actor in self.roles.actors.items()]
        for name, evaluator in self.roles.evaluators.items():
            timed_tick(evaluator, rows[name])
        assert any(moved), "no role has anything to do: the balance is wrong"

    def _make_round(self) -> None:
        """Let the actors make the unrolls of one version: a learner that never waits would leave
        them no turn in this process."""
        buffer = self.roles.gauges.the("buffer")
        enough = buffer[Gauge.ITEMS] + self._round
        self.roles.side.group.tick_buffer()
        while buffer[Gauge.ITEMS] < enough:
            self._tick_actors()
            self.roles.side.group.tick_buffer()
