"""A real buffer and learner on channels of their own; every tick is timed.

They train on copies of one recorded unroll, sent again and again in place of actors: no environment
is involved, and sending the copies does not count. The learning rate is next to nothing: a policy
that learnt from one unroll for thousands of updates would diverge. A version is added up from its
parts: receiving, taking, updates, finishing. So a version too long for a span is measured by the
updates that fit into it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from tianji.algorithms.interface import QueueCadence
from tianji.algorithms.registry import load_algorithm
from tianji.buffer.interface import Progress
from tianji.buffer.role import Buffer
from tianji.channels.gauges import Gauge
from tianji.channels.interface import Sender
from tianji.channels.layout import Layout
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.costs.profile import LearnerCost
from tianji.engines.assembly.model import build_model
from tianji.engines.assembly.roles import Roles
from tianji.engines.assembly.wiring import SharedEnds, SharedMemory
from tianji.engines.spec import RunSpec
from tianji.models.tensors import Snapshot
from tianji.planning.measure.crew import LOOK_S, Span
from tianji.planning.measure.durations import (
    CoreWait,
    Durations,
    Figure,
    Piece,
    ProcessFamily,
    figure_of,
)
from tianji.programs.ablations.waits import without_waits
from tianji.programs.one_group import program_for
from tianji.types import PLACE, Array, Batch, Stamp, Unroll

WARM_UPDATES = 3
STILL = 1e-20
"""A learning rate that changes no parameter, and takes as long as any other."""


class _TimedBuffer(Buffer):
    """A buffer whose takes are timed."""

    def __init__(self, buffer: Buffer, takes: Durations) -> None:
        self.__dict__.update(buffer.__dict__)
        self._takes = takes
        self.last_take_s = 0.0

    def take(self) -> Batch | None:
        self._takes.begin()
        before_ns = time.monotonic_ns()
        batch = super().take()
        self.last_take_s = (time.monotonic_ns() - before_ns) / 1e9
        if batch is not None:
            self._takes.add(Piece(self.last_take_s))
            self._takes.begin()
        return batch


class LearnerBench:
    """One buffer and learner; the number of torch's threads changes from span to span."""

    def __init__(self, spec: RunSpec, recorded: Unroll) -> None:
        plan = spec.plan
        spec = replace(spec, config=_at_rest(spec.config))
        self._num_unrolls = plan.unrolls_per_version
        self._cadence = load_algorithm(spec.config.algorithm.name).cadence(spec.config)
        self._core_wait = CoreWait()
        self._updates = Durations(self._core_wait)
        self._takes = Durations(self._core_wait)
        self._receive_s: list[float] = []
        self._fed_s = self._fed_cpu_s = 0.0
        program = without_waits(program_for(spec.config, plan))
        ends = SharedEnds(program, plan, SharedMemory.create(program, plan).fds)
        roles = Roles(spec, program, ends, lambda report: None)
        (learner,) = program.of_kind("learner")

        def time_takes(progress: Progress) -> Buffer:
            self._buffer = _TimedBuffer(roles.buffer(progress, learner), self._takes)
            return self._buffer

        group = roles.training(learner, lambda: None, time_takes).group
        senders = [ends.sender(role) for role in program.of_kind("actor")]
        self._recorded = RecordedUnroll(plan, senders, recorded)
        self.policy_bytes = Snapshot(build_model(spec)).nbytes
        self._group, self._learner = group, group.learner
        self._row, self._buffer_row = group.gauges.learner, group.gauges.buffer
        self._family = ProcessFamily()
        self._learner.publish()
        self._publish_s = [self._row[Gauge.PUBLISH_NS] / 1e9]
        self._finish_s = list(self._publish_s)
        self._send(plan.warmup_unrolls)  # what a replay store holds in the middle of a run

    def memory_bytes(self) -> int:
        return self._family.memory_bytes()

    def work(self, span: Span, threads: int) -> LearnerCost:
        """Train until the span is over; whatever begins in it counts."""
        torch.set_num_threads(threads)
        self._forget()
        while len(self._updates) < WARM_UPDATES or time.monotonic_ns() < span.begin_ns:
            self._tick()
        self._core_wait.refresh()  # torch has started its threads
        self._forget()
        began_cpu_s, began_s = self._cpu_s(), self._free_s()
        next_look_s = time.monotonic() + LOOK_S
        while not self._updates or time.monotonic_ns() < span.end_ns:
            self._tick()
            if span.is_alone and time.monotonic() > next_look_s:
                next_look_s = time.monotonic() + LOOK_S
                if self._is_stable():
                    break
        return self._summary((self._cpu_s() - began_cpu_s) / (self._free_s() - began_s))

    def _is_stable(self) -> bool:
        """Return whether more work would change little. The span may have begun with the end of a
        version, which a loaded machine can draw out, so that there is no update yet."""
        return len(self._updates) > 0 and self._version_figure().is_stable

    def _forget(self) -> None:
        """Drop all durations, but keep the last of each rare kind: a span may see none."""
        self._updates.clear()
        self._takes.clear(keep=1)
        del self._finish_s[:-1], self._publish_s[:-1], self._receive_s[:-1]

    def _cpu_s(self) -> float:
        return self._family.cpu_s() - self._fed_cpu_s

    def _free_s(self) -> float:
        """Return a clock that stops while unrolls are sent and while others have the core."""
        return self._core_wait.free_s() - self._fed_s

    def _send(self, count: int) -> None:
        cpu_s, clock_s = self._family.cpu_s(), self._core_wait.free_s()
        self._recorded.send(count, self._learner.version, self._buffer.tick)
        self._fed_cpu_s += self._family.cpu_s() - cpu_s
        self._fed_s += self._core_wait.free_s() - clock_s

    def _tick(self) -> None:
        """Tick the buffer, then the learner, as their worker does in a run."""
        is_new = self._learner.is_between_versions
        if is_new:
            self._send(self._num_unrolls)
            self._updates.begin()
        num_before, published_ns = self._buffer_row[Gauge.ITEMS], self._row[Gauge.PUBLISH_NS]
        began_ns = time.monotonic_ns()
        self._group.tick_buffer()
        received_ns = time.monotonic_ns()
        worked = self._group.tick_learner()
        ended_ns = time.monotonic_ns()
        assert worked, "the learner has all unrolls of a version, and does not move"
        num_received = self._buffer_row[Gauge.ITEMS] - num_before
        if num_received:
            self._receive_s.append((received_ns - began_ns) / 1e9 / num_received)
            began_ns = received_ns
        seconds = (ended_ns - began_ns) / 1e9
        if self._learner.is_between_versions:
            self._finish_s.append(seconds)
            self._publish_s.append((self._row[Gauge.PUBLISH_NS] - published_ns) / 1e9)
        else:
            self._updates.add(Piece(seconds - (self._buffer.last_take_s if is_new else 0.0)))

    def _version_figure(self) -> Figure:
        steps_per_update = self._row[Gauge.STEPS] / self._row[Gauge.UPDATES]
        num_updates = round(self._cadence.trained_steps_per_version / steps_per_update)
        updates = figure_of(self._updates.rows()[:, 0], max(1, num_updates))
        rest_s = (
            self._num_unrolls * _median(self._receive_s)
            + self._takes.figure().median_s
            + _median(self._finish_s)
        )
        return updates._replace(median_s=updates.median_s + rest_s)

    def _summary(self, busy_cores: float) -> LearnerCost:
        receive_s = _median(self._receive_s)
        if isinstance(
            self._cadence, QueueCadence
        ):  # putting unrolls side by side is part of receiving
            receive_s += self._takes.figure().median_s / self._num_unrolls
        return LearnerCost(
            threads=torch.get_num_threads(),
            version=self._version_figure().to_cost(busy_cores),
            update_s=self._updates.figure().median_s,
            receive_s=receive_s,
            publish_s=_median(self._publish_s),
            memory_bytes=self.memory_bytes(),
        )

    def close(self) -> None:
        self._core_wait.close()


def _at_rest(config: RunConfig) -> RunConfig:
    """Return the config of a learner that makes all its updates and learns nothing."""
    algorithm = config.algorithm
    rates = {"learning_rate", "learning_rate_final"} & type(algorithm).model_fields.keys()
    still = algorithm.model_copy(update=dict.fromkeys(rates, STILL))
    return config.model_copy(update={"algorithm": still})


def _median(durations_s: list[float]) -> float:
    return figure_of(durations_s, 1).median_s


class RecordedUnroll:
    """Sends copies of the unroll on all lanes in turn."""

    def __init__(self, plan: RunPlan, senders: Sequence[Sender], recorded: Unroll) -> None:
        self._unroll = tiled(Layout.from_json(plan.layout), recorded)
        self._num_steps = int(np.count_nonzero(self._unroll["valid"][plan.lookahead - 1 :]))
        self._senders = senders
        self._next_lane = 0
        self._length = plan.unroll_length
        self._made = [0] * len(senders)
        """Rows sent on each lane."""

    def send(self, count: int, version: int, grant: Callable[[], object]) -> None:
        """Send this many unrolls of this version; `grant` makes the buffer grant slots."""
        idle = 0
        while count:
            lane = self._next_lane
            self._next_lane = (lane + 1) % len(self._senders)
            sender = self._senders[lane]
            reserved = sender.reserve()
            if reserved is None:
                idle += 1
                if idle == len(self._senders):
                    grant()
                    idle = 0
                continue
            unroll = sender.unroll(reserved.slot)
            for name, array in unroll.items():
                array[...] = self._unroll[name]
            if PLACE in unroll:  # each continues the one before, as in a run
                unroll[PLACE][:] = 0, self._made[lane], self._length
                self._made[lane] += self._length
            stamp = Stamp(lane, reserved.round, version, version, self._num_steps, 0, 0)
            sender.send(reserved.slot, stamp)
            count, idle = count - 1, 0


def tiled(layout: Layout, recorded: Mapping[str, Array]) -> dict[str, Array]:
    """Repeat what was recorded until it has the rows and environments of this layout."""
    found = {}
    for field in layout.fields:
        array = recorded[field.name]
        for axis, size in enumerate(layout.shape(field)):
            if array.shape[axis] != size:
                array = np.take(array, np.arange(size) % array.shape[axis], axis=axis)
        found[field.name] = array
    return found
