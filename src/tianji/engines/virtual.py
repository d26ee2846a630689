"""The virtual engine: every role in this process, asynchronous in simulated time.

Roles really act, step and learn; only the time that it takes is taken from a profile or a table
instead of a watch. So unrolls overtake each other, lag and pacing happen as on a machine with these
costs, and a run with the same seed and costs is the same to the last bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tianji.channels.gauges import Gauge, Ticks, timed_tick
from tianji.channels.inproc import InprocBoard
from tianji.channels.layout import Layout
from tianji.config.machine import read_machine
from tianji.config.plan import RunPlan
from tianji.costs.profile import Profile
from tianji.costs.work import Work
from tianji.engines.arithmetic import use_threads
from tianji.engines.interface import Observer, Outcome
from tianji.engines.moments import run_moments
from tianji.engines.signals import StopRequest
from tianji.engines.spec import RunSpec
from tianji.engines.together import Together
from tianji.programs.program import Program
from tianji.records import StoppedBecause
from tianji.types import Clock
from tianji.virtual.channels import VirtualBoard, VirtualStream
from tianji.virtual.clock import Action, VirtualClock
from tianji.virtual.costs import LearnerJob
from tianji.virtual.node import IDLE_NS, Node, Worker
from tianji.virtual.table import RunCosts, costs_of


class VirtualEngine:
    """Runs a program in the calling process, on one simulated machine."""

    def __init__(
        self,
        spec: RunSpec,
        program: Program,
        observer: Observer,
        profile: Profile | None = None,
    ) -> None:
        """profile: what the parts cost on this machine, which is then the one that is simulated.
        None takes a fixed table and a core for every worker, the same everywhere."""
        plan = spec.plan
        self._threads = plan.learner_threads
        self._observer = observer
        self._costs = costs_of(plan, profile)
        self._clock = VirtualClock(start_ns=time.monotonic_ns())
        self._node = Node(_num_cores(plan, program) if profile is None else _cores_here())
        layout = Layout.from_json(plan.layout)
        stream = VirtualStream(layout, plan.num_slots, plan.num_actors, self)

        def make_board(nbytes: int) -> InprocBoard:
            return VirtualBoard(nbytes, self)

        self._roles = Together(spec, program, observer, stream, make_board, self._clock.now_ns)
        self._actors = [
            self._make_worker(actor, name) for name, actor in self._roles.actors.items()
        ]
        self._learner = self._make_learner()
        self._others = [
            self._make_worker(evaluator, name, IDLE_NS)
            for name, evaluator in self._roles.evaluators.items()
        ]

    def _make_worker(self, role: Ticks, name: str, idle_ns: int = 0) -> Worker:
        row = self._roles.gauges.rows[name]
        job = _ActingJob(role, row, self._costs, self._clock.now_ns)
        cores = max(1.0, self._costs.row.cores)
        return Worker(self._clock, self._node, job, [row], cores, idle_ns)

    def _make_learner(self) -> Worker:
        rows = [self._roles.gauges.rows[name] for name in ("buffer", "learner")]
        job = LearnerJob(self._tick_side, self._costs.learner, *rows)
        cores = self._costs.learner.cores
        return Worker(self._clock, self._node, job, rows, cores, IDLE_NS)

    def _tick_side(self) -> bool:
        use_threads(self._threads)
        return self._roles.side.tick()

    # Ways (virtual.channels.Ways).

    def grant(self, lane: int, deliver: Action) -> None:
        def arrive() -> None:
            deliver()
            self._actors[lane].wake()

        self._learner.after_what_left(arrive)

    def unroll(self, lane: int, deliver: Action, wakes: Callable[[], bool]) -> None:
        def arrive() -> None:
            deliver()
            if wakes():
                self._learner.wake()

        self._actors[lane].later(arrive)

    def policy(self, deliver: Action) -> None:
        self._learner.later(deliver)

    # Running.

    def run(self, stop: StopRequest, resume: bool) -> Outcome:
        return self._roles.run(self._loop, stop, resume)

    def _loop(self, stop: StopRequest) -> StoppedBecause:
        self._learner.deliver()  # the first policy
        for worker in (self._learner, *self._others):
            worker.wake()
        return run_moments(self._clock, self._roles, self._observer, stop)


def _num_cores(plan: RunPlan, program: Program) -> int:
    """One for every thread."""
    others = len(program.of_kind("evaluator"))
    return plan.num_actors * plan.actor_threads + plan.learner_threads + others


def _cores_here() -> int:
    return len(read_machine().cores)


class _ActingJob:
    """An actor or an evaluator, one step of its environments at a time."""

    def __init__(
        self, role: Ticks, gauges: memoryview[int], costs: RunCosts, now_ns: Clock
    ) -> None:
        self._role = role
        self._gauges = gauges
        self._costs = costs
        self._now_ns = now_ns

    def tick(self) -> Work | None:
        use_threads(1)
        return self._costs.row if timed_tick(self._role, self._gauges, self._now_ns) else None

    def spend(self, took_ns: int) -> None:
        self._gauges[Gauge.BUSY_NS] += took_ns
        self._gauges[Gauge.ENV_NS] += round(took_ns * self._costs.environment_share)
