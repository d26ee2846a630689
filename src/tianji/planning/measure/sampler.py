"""A real actor on channels of its own, whose every tick is timed.

Its one slot is granted again as soon as it has been sent, and a new policy is posted as often as in
a run. An unroll is `unroll_length` ticks, wherever they begin: so environments too slow for a
whole unroll are measured by the ticks they manage.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from tianji.channels.board import ShmBoardReader, ShmBoardWriter
from tianji.channels.gauges import Gauge, timed_tick
from tianji.channels.layout import Layout
from tianji.channels.memory import BELL_BYTES, Bell, Segment
from tianji.channels.orders import BufferRows
from tianji.channels.shm import ShmReceiver, ShmSender, StreamMemory
from tianji.engines.build import build_actor
from tianji.engines.model import build_model
from tianji.engines.spec import RunSpec
from tianji.envs.timing import LONG_STEP_S
from tianji.models.flat import Snapshot
from tianji.planning.measure.choices import is_waiting
from tianji.planning.measure.family import Family
from tianji.planning.measure.noise import figure_of, unevenness
from tianji.planning.measure.quiet import CoreWait, Durations, Piece, Rows
from tianji.planning.measure.readings import LOOK_S, Sampled, Span
from tianji.types import Stamp

WARM_TICKS = 2
"""The first one resets the environments."""
SLOW_S = 3.0
"""Alone, an environment that is slow, or slow now and then, may take so long."""
SEND_REPEATS = 200
RECORD_S = 2.0


class Sampler:
    """Built anew for every number of environments."""

    def __init__(self, spec: RunSpec) -> None:
        plan = spec.plan
        self._plan = plan
        self._layout = Layout.from_json(plan.layout)
        self._memory = StreamMemory.create(self._layout, 1, 1)
        self._bells = Segment.create("bells", 2 * BELL_BYTES)
        bells = [Bell(self._bells, index * BELL_BYTES) for index in range(2)]
        for bell in bells:
            bell.initialise()
        self._receiver = ShmReceiver(self._memory, bells[:1])
        self._sender = ShmSender(self._memory, 0, bells[1])
        self._snapshot = Snapshot(build_model(spec))
        self._board_fd = os.memfd_create("tianji-policy")
        self._board = ShmBoardWriter(self._board_fd, self._snapshot.nbytes)
        (rows,) = BufferRows.private(num_actors=1).actors
        self._gauges = rows.gauges
        reader = ShmBoardReader(self._board_fd)
        # An environment that fails now and then is mended, as in the run.
        self._actor = build_actor(
            spec, 0, lambda: self._sender, reader, rows, reports=lambda report: None
        )
        self._unrolls_per_policy = max(1, plan.unrolls_per_version // plan.num_actors)
        self._first_row = plan.lookahead - 1
        self._row = self._round = 0
        self._core_wait = CoreWait()
        self._ticks = Durations(self._core_wait)
        """Of each tick: its time, the part in the environments, and whether one was reset."""
        self._arrays = {name: array[0] for name, array in self._receiver.arrays.items()}
        self._longest_s = 0.0
        """Of the ticks of this span: an environment with rare long steps needs a longer look."""
        self._family = Family()
        self._began_cpu_s = self._began_s = self._began_free_s = 0.0
        self._send_s = self._time_sending()

    def memory_bytes(self) -> int:
        return self._family.memory_bytes()

    def work(self, span: Span) -> Sampled:
        """Tick until the span is over; whatever begins in it counts."""
        self._core_wait.refresh()
        self._ticks.clear()
        while len(self._ticks) < WARM_TICKS or time.monotonic_ns() < span.begin_ns:
            self._tick()
        self._ticks.clear()
        self._longest_s = 0.0
        self._began_s, self._began_free_s = time.monotonic(), self._core_wait.free_s()
        self._began_cpu_s = self._family.cpu_s()
        next_look_s = time.monotonic() + LOOK_S
        while not self._ticks or time.monotonic_ns() < self._end_ns(span):
            self._tick()
            if span.is_alone and time.monotonic() > next_look_s:
                next_look_s = time.monotonic() + LOOK_S
                if self._is_stable():
                    break
        return self._summary(self._undisturbed())

    def _is_waiting(self) -> bool:
        return is_waiting(1.0, self._busy_cores())

    def _busy_cores(self) -> float:
        """How many cores it kept busy, of the time in which it was not kept from them."""
        cpu_s = self._family.cpu_s() - self._began_cpu_s
        return cpu_s / self._free_s()

    def _free_s(self) -> float:
        return self._core_wait.free_s() - self._began_free_s

    def _undisturbed(self) -> Rows:
        if self._is_waiting():
            return self._ticks.cleaned()
        quiet = self._ticks.quiet()
        return quiet if len(quiet) else self._ticks.cleaned()

    def _end_ns(self, span: Span) -> int:
        is_slow = len(self._ticks) < 2 * self._plan.unroll_length or self._longest_s > LONG_STEP_S
        return span.begin_ns + int(SLOW_S * 1e9) if span.is_alone and is_slow else span.end_ns

    def _is_stable(self) -> bool:
        length, ticks = self._plan.unroll_length, self._undisturbed()
        return len(ticks) >= 2 * length and figure_of(ticks[:, 0], length).is_stable

    def _tick(self) -> None:
        if self._row == 0:
            self._offer()
        env_ns, before_ns = self._gauges[Gauge.ENV_NS], time.monotonic_ns()
        worked = timed_tick(self._actor, self._gauges)
        after_ns = time.monotonic_ns()
        assert worked, "the actor has a grant and a policy, and does not move"
        env_ns = self._gauges[Gauge.ENV_NS] - env_ns
        has_reset = self._reset_in(self._first_row + self._row)
        self._longest_s = max(self._longest_s, (after_ns - before_ns) / 1e9)
        self._ticks.add(Piece((after_ns - before_ns) / 1e9, env_ns / 1e9, has_reset))
        self._row += 1
        if self._row == self._plan.unroll_length:
            self._take_back()

    def _offer(self) -> None:
        if self._round % self._unrolls_per_policy == 0:
            self._board.post(self._round, self._snapshot.write_to)
        granted = self._receiver.grant(0, self._round)
        assert granted == 1, "the only slot is not free"

    def _take_back(self) -> None:
        slot = self._receiver.take()
        assert slot is not None, "an unroll of so many rows should have been sent"
        self._receiver.release(slot)
        self._row, self._round = 0, self._round + 1

    def _reset_in(self, row: int) -> bool:
        """Whether an environment began a new episode in this step."""
        if not self._plan.keeps_final:
            return not self._arrays["valid"][row].all()
        return bool((self._arrays["terminated"][row] | self._arrays["truncated"][row]).any())

    def _summary(self, ticks: Rows) -> Sampled:
        tick_s, env_s, has_reset = ticks.T
        figure = figure_of(tick_s, self._plan.unroll_length, self._is_waiting())
        with_reset, without = env_s[has_reset > 0], env_s[has_reset == 0]
        if not len(without):
            without = env_s
        step_s = float(np.median(without))
        return Sampled(
            unroll_s=figure.median_s,
            cpu_s=self._busy_cores() * figure.median_s,
            noise=figure.noise,
            environment_share=min(1.0, float(env_s.sum() / tick_s.sum())),
            step_s=step_s / self._plan.envs_per_actor,
            unevenness=unevenness(without),
            reset_factor=float(np.median(with_reset)) / step_s if len(with_reset) else 1.0,
            send_s=self._send_s,
            disturbed_share=max(0.0, 1 - self._free_s() / (time.monotonic() - self._began_s)),
            memory_bytes=self.memory_bytes(),
        )

    def _time_sending(self) -> float:
        """The sender's part of handing one unroll over."""
        stamp = Stamp(0, 0, 0, 0, 0, 0, 0)
        spent_s: list[float] = []
        for number in range(SEND_REPEATS):
            self._receiver.grant(0, number)
            before_ns = time.monotonic_ns()
            grant = self._sender.reserve()
            assert grant is not None, "a slot was granted and cannot be reserved"
            self._sender.send(grant.slot, stamp)
            spent_s.append((time.monotonic_ns() - before_ns) / 1e9)
            self._take_back()
        self._round = 0
        return figure_of(spent_s, 1).median_s

    def record(self, path: Path) -> None:
        """Save rows of a real unroll, as many as it makes in a little while."""
        deadline = time.monotonic() + RECORD_S
        self._tick()
        while self._row and time.monotonic() < deadline:
            self._tick()
        num_rows = self._row or self._plan.unroll_length
        first, last = self._first_row, self._first_row + num_rows
        with path.open("wb") as file:
            np.savez(file, **{
                field.name: self._arrays[field.name]
                if field.per == "unroll"
                else self._arrays[field.name][first : last + (field.per == "obs")]
                for field in self._layout.fields
            })  # fmt: skip

    def close(self) -> None:
        self._core_wait.close()
        self._actor.close()
        os.close(self._board_fd)
        for segment in (self._memory.slots, self._memory.lanes, self._bells):
            segment.close()
