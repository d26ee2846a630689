"""The virtual engine: every role in this process, asynchronous in simulated time.

Roles really act, step and learn; only their time is simulated. Items either cost what a profile or
a table says, on cores that workers share, or take the times that the config gives. Items overtake
each other, lag and pacing occur as on a machine with these costs, and a run with the same seed and
costs is the same to the last bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tianji.channels.gauges import Ticks
from tianji.channels.inproc import InprocBoard
from tianji.channels.layout import Layout
from tianji.config.machine import read_machine
from tianji.config.plan import RunPlan
from tianji.costs.profile import Profile
from tianji.engines.arithmetic import use_threads
from tianji.engines.assembly.gradients import gather_of
from tianji.engines.interface import Observer, Outcome
from tianji.engines.one_process import OneProcess
from tianji.engines.signals import StopRequest
from tianji.engines.spec import RunSpec
from tianji.programs.program import Program
from tianji.records import StoppedBecause
from tianji.virtual.channels import VirtualBoard, VirtualStream
from tianji.virtual.clock import VirtualClock
from tianji.virtual.cluster import Cluster, Machines
from tianji.virtual.costs import FREE, LearnerParts, RunCosts, costs_of
from tianji.virtual.jobs import LEARNER_RANKS, ActingJob, LearnerJob, TimedJob, actor_ranks
from tianji.virtual.node import IDLE_NS


class VirtualEngine:
    """Runs a program in the calling process, on one simulated machine."""

    def __init__(
        self,
        spec: RunSpec,
        program: Program,
        observer: Observer,
        profile: Profile | None = None,
    ) -> None:
        """profile: the costs of the parts on this machine, which is then simulated. Without one, a
        fixed table and a core for every worker are used, the same everywhere."""
        plan = spec.plan
        self._observer = observer
        self._clock = VirtualClock(start_ns=time.monotonic_ns())
        has_own_cores = profile is None or gather_of(spec) is not None
        cores = _num_threads(plan, program) if has_own_cores else len(read_machine().cores)
        self._cluster = Cluster(self._clock, Machines(cores), plan.num_actors)
        layout = Layout.from_json(plan.layout)
        stream = VirtualStream(layout, plan.num_slots, plan.num_actors, self._cluster)

        def make_board(nbytes: int) -> InprocBoard:
            return VirtualBoard(nbytes, self._cluster)

        self._roles = OneProcess(spec, program, observer, stream, make_board, self._clock.now_ns)
        self._settle: Callable[[], None] | None = None
        if gather_of(spec) is None:
            self._add_workers(costs_of(plan, profile), plan.learner_threads)
        else:
            self._add_timed_workers()

    def _add_workers(self, costs: RunCosts, learner_threads: int) -> None:
        """Let every tick take the time that it costs."""
        cores = max(1.0, costs.row.cores)
        for name, actor in self._roles.actors.items():
            self._cluster.add_actor(self._acting_job(name, actor, costs), cores)
        job = self._learner_job(costs.learner, learner_threads)
        self._cluster.add_learner(job, costs.learner.cores, IDLE_NS)
        for name, evaluator in self._roles.evaluators.items():
            self._cluster.add_other(self._acting_job(name, evaluator, costs), cores, IDLE_NS)

    def _add_timed_workers(self) -> None:
        """Let gradients take given times, and nothing else take any."""
        rows, now_ns = self._roles.gauges.rows, self._clock.now_ns
        for name, actor in self._roles.actors.items():
            job = TimedJob(actor, rows[name], now_ns)
            self._cluster.add_actor(job, ranks=actor_ranks(actor.index))
        self._cluster.add_learner(self._learner_job(FREE.learner, 1), 1.0, ranks=LEARNER_RANKS)
        for name, evaluator in self._roles.evaluators.items():
            self._cluster.add_other(self._acting_job(name, evaluator, FREE), 1.0)
        self._settle = self._cluster.settle_actors

    def _acting_job(self, name: str, role: Ticks, costs: RunCosts) -> ActingJob:
        def tick() -> bool:
            use_threads(1)
            return role.tick()

        return ActingJob(tick, self._roles.gauges.rows[name], costs, self._clock.now_ns)

    def _learner_job(self, parts: LearnerParts, threads: int) -> LearnerJob:
        side, gauges = self._roles.side, self._roles.gauges

        def tick() -> bool:
            use_threads(threads)
            return side.tick()

        def due_ns() -> int:
            return side.due_ns if side.due_ns > self._clock.now_ns() else 0

        return LearnerJob(tick, parts, gauges.the("buffer"), gauges.the("learner"), due_ns)

    def run(self, stop: StopRequest, resume: bool) -> Outcome:
        return self._roles.run(self._loop, stop, resume, self._settle)

    def _loop(self, stop: StopRequest) -> StoppedBecause:
        self._cluster.start()
        while (because := self._roles.side.ended(stop.level)) is None:
            self._observer.tick()
            if not self._clock.step():
                raise AssertionError("no role has anything to do: the balance is wrong")
        if self._settle is not None:
            self._settle()
        return because


def _num_threads(plan: RunPlan, program: Program) -> int:
    others = len(program.of_kind("evaluator"))
    return plan.num_actors * plan.actor_threads + plan.learner_threads + others
