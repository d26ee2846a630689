"""A real actor on channels of its own; every tick is timed.

Its one slot is granted again as soon as it was sent, and a new policy is posted as often as in a
run. An unroll is any `unroll_length` ticks in a row, so environments too slow for a whole unroll
are measured by the ticks that they manage.
"""

from __future__ import annotations

import time

import numpy as np

from tianji.channels.gauges import Gauge, timed_tick
from tianji.channels.layout import Layout
from tianji.costs.profile import ActorCost
from tianji.engines.assembly.model import build_model
from tianji.engines.assembly.roles import Roles
from tianji.engines.assembly.wiring import SharedEnds, SharedMemory
from tianji.engines.spec import RunSpec
from tianji.envs.timing import LONG_STEP_S
from tianji.models.tensors import Snapshot
from tianji.planning.measure.choices import is_waiting
from tianji.planning.measure.crew import LOOK_S, Sampled, Span
from tianji.planning.measure.durations import (
    CoreWait,
    Durations,
    Piece,
    ProcessFamily,
    figure_of,
    unevenness,
)
from tianji.programs.ablations.waits import without_waits
from tianji.programs.one_group import program_for
from tianji.types import Stamp, Unroll

WARM_TICKS = 2  # the first one resets the environments
SLOW_S = 3.0  # alone, a slow environment or one with rare long steps may take this long
SEND_REPEATS = 200
RECORD_S = 2.0


class ActorBench:
    """One actor, built for one number of environments."""

    policy_bytes = 0

    def __init__(self, spec: RunSpec) -> None:
        plan = self._plan = spec.plan
        # Two lanes share one slot: the actor sends on the first, _time_sending on the second.
        wired = plan.model_copy(update={"num_actors": 2, "num_slots": 1, "replay_rows": 0})
        program = without_waits(program_for(spec.config, wired))
        self._memory = SharedMemory.create(program, wired)
        ends = SharedEnds(program, wired, self._memory.fds)
        self._snapshot = Snapshot(build_model(spec))
        self._policy = ends.policy_writer(self._snapshot.nbytes)
        self._receiver = ends.receiver()
        acts, sends = program.of_kind("actor")
        self._sender = ends.sender(sends)
        # As in the run, an environment that fails is replaced.
        self._actor = Roles(spec, program, ends, lambda report: None).actor(acts, mends=True)
        self._gauges = ends.gauges.rows[acts.name]
        self._layout = Layout.from_json(plan.layout)
        self._unroll = {name: array[0] for name, array in self._receiver.arrays.items()}
        self._first_row = plan.lookahead - 1
        self._row = self._round = 0
        self._core_wait = CoreWait()
        self._ticks = Durations(self._core_wait)
        self._longest_s = 0.0
        self._family = ProcessFamily()
        self._began_s = self._began_cpu_s = self._began_free_s = 0.0
        self._send_s = self._time_sending()

    def memory_bytes(self) -> int:
        return self._family.memory_bytes()

    def work(self, span: Span, threads: int) -> Sampled:
        """Tick until the span is over; whatever begins in it counts."""
        self._core_wait.refresh()
        self._ticks.clear()
        while len(self._ticks) < WARM_TICKS or time.monotonic_ns() < span.begin_ns:
            self._tick()
        self._ticks.clear()
        self._longest_s = 0.0
        self._began_s, self._began_free_s = time.monotonic(), self._core_wait.free_s()
        self._began_cpu_s = self._family.cpu_s()
        next_look_s = self._began_s + LOOK_S
        while not self._ticks or time.monotonic_ns() < self._end_ns(span):
            self._tick()
            if span.is_alone and time.monotonic() > next_look_s:
                next_look_s = time.monotonic() + LOOK_S
                if self._is_stable():
                    break
        return self._summary()

    def _busy_cores(self) -> float:
        """Return how many cores it kept busy while no other program had its core."""
        return (self._family.cpu_s() - self._began_cpu_s) / self._free_s()

    def _free_s(self) -> float:
        return self._core_wait.free_s() - self._began_free_s

    def _end_ns(self, span: Span) -> int:
        is_slow = len(self._ticks) < 2 * self._plan.unroll_length or self._longest_s > LONG_STEP_S
        return span.begin_ns + int(SLOW_S * 1e9) if span.is_alone and is_slow else span.end_ns

    def _is_stable(self) -> bool:
        length = self._plan.unroll_length
        tick_s = self._ticks.rows(is_waiting(1.0, self._busy_cores()))[:, 0]
        return len(tick_s) >= 2 * length and figure_of(tick_s, length).is_stable

    def _tick(self) -> None:
        if self._row == 0:
            self._offer()
        env_ns, before_ns = self._gauges[Gauge.ENV_NS], time.monotonic_ns()
        worked = timed_tick(self._actor, self._gauges)
        seconds = (time.monotonic_ns() - before_ns) / 1e9
        assert worked, "the actor has a grant and a policy, and does not move"
        env_s = (self._gauges[Gauge.ENV_NS] - env_ns) / 1e9
        self._longest_s = max(self._longest_s, seconds)
        self._ticks.add(Piece(seconds, env_s, self._has_reset(self._first_row + self._row)))
        self._row += 1
        if self._row == self._plan.unroll_length:
            self._take_back()

    def _offer(self) -> None:
        unrolls_per_policy = max(1, self._plan.unrolls_per_version // self._plan.num_actors)
        if self._round % unrolls_per_policy == 0:
            self._policy.post(self._round, self._snapshot.write_to)
        granted = self._receiver.grant(0, self._round)
        assert granted == 1, "the only slot is not free"

    def _take_back(self) -> None:
        slot = self._receiver.take()
        for _ in range(2):  # the last row may be inferred, or stepped on threads, meanwhile
            if slot is None:
                self._actor.tick()
                slot = self._receiver.take()
        assert slot is not None, "an unroll of this many rows should have been sent"
        self._receiver.release(slot)
        self._row, self._round = 0, self._round + 1

    def _has_reset(self, row: int) -> bool:
        """Return whether an environment began a new episode in this step."""
        if not self._plan.keeps_final:
            return not self._unroll["valid"][row].all()
        return bool((self._unroll["terminated"][row] | self._unroll["truncated"][row]).any())

    def _summary(self) -> Sampled:
        busy_cores = self._busy_cores()
        sleeps = is_waiting(1.0, busy_cores)
        tick_s, env_s, has_reset = self._ticks.rows(sleeps).T
        figure = figure_of(tick_s, self._plan.unroll_length, sleeps)
        with_reset, without = env_s[has_reset > 0], env_s[has_reset == 0]
        if not len(without):
            without = env_s
        step_s = float(np.median(without))
        return Sampled(
            cost=ActorCost(
                num_envs=self._plan.envs_per_actor,
                threads=self._plan.actor_threads,
                unroll=figure.to_cost(busy_cores),
                environment_share=min(1.0, float(env_s.sum() / tick_s.sum())),
                unevenness=unevenness(without),
                memory_bytes=self.memory_bytes(),
            ),
            step_s=step_s / self._plan.envs_per_actor,
            reset_factor=float(np.median(with_reset)) / step_s if len(with_reset) else 1.0,
            send_s=self._send_s,
            disturbed_share=max(0.0, 1 - self._free_s() / (time.monotonic() - self._began_s)),
        )

    def _time_sending(self) -> float:
        """Return the sender's time to hand over one unroll."""
        stamp = Stamp(1, 0, 0, 0, 0, 0, 0)
        spent_s: list[float] = []
        for number in range(SEND_REPEATS):
            self._receiver.grant(1, number)
            before_ns = time.monotonic_ns()
            grant = self._sender.reserve()
            assert grant is not None, "a slot was granted and cannot be reserved"
            self._sender.send(grant.slot, stamp)
            spent_s.append((time.monotonic_ns() - before_ns) / 1e9)
            self._take_back()
        self._round = 0
        return figure_of(spent_s, 1).median_s

    def record(self) -> Unroll:
        """Return the rows of a real unroll, as many as it makes in RECORD_S; observations have one
        more."""
        deadline = time.monotonic() + RECORD_S
        self._tick()
        while self._row and (self._row < 2 or time.monotonic() < deadline):
            self._tick()
        # The newest row may be in work on threads of the environments.
        num_rows = self._row - 1 if self._row else self._plan.unroll_length
        first, end = self._first_row, self._first_row + num_rows
        return {
            field.name: self._unroll[field.name]
            if field.per == "unroll"
            else self._unroll[field.name][first : end + (field.per == "obs")]
            for field in self._layout.fields
        }

    def close(self) -> None:
        self._core_wait.close()
        self._actor.close()
        self._memory.close()
