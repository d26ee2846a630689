"""A real buffer and learner on channels of their own, whose every tick is timed.

They are fed with a recorded unroll: no environment is in the way, and the feeding does not count.
A version too long for a span is put together from its parts: receiving, taking, so many updates,
publishing.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch

from tianji.algorithms.interface import QueueCadence
from tianji.algorithms.registry import load_algorithm
from tianji.channels.board import ShmBoardWriter
from tianji.channels.gauges import Gauge, Gauges, timed_tick
from tianji.channels.interface import Batches
from tianji.channels.orders import BufferRows
from tianji.engines.build import build_buffer
from tianji.engines.model import build_model
from tianji.engines.spec import RunSpec
from tianji.learner.progress import Progress
from tianji.learner.role import Learner
from tianji.models.flat import Snapshot
from tianji.planning.measure.family import Family
from tianji.planning.measure.feeder import Feeder
from tianji.planning.measure.noise import FEWEST_BLOCKS, Figure, figure_of
from tianji.planning.measure.quiet import CoreWait, Durations, Piece, median_s
from tianji.planning.measure.readings import LOOK_S, Span, Trained
from tianji.types import Batch

WARM_UPDATES = 3


class _TimedBatches:
    """The buffer as the learner sees it, with the time that taking takes."""

    def __init__(self, batches: Batches, core_wait: CoreWait) -> None:
        self._batches = batches
        self.takes = Durations(core_wait)
        self.last_take_s = 0.0

    def take(self) -> Batch | None:
        self.takes.begin()
        before_ns = time.monotonic_ns()
        batch = self._batches.take()
        self.last_take_s = (time.monotonic_ns() - before_ns) / 1e9
        if batch is not None:
            self.takes.end(Piece(self.last_take_s))
        return batch

    def finish(self, batch: Batch, version: int) -> int:
        return self._batches.finish(batch, version)


class Trainer:
    """Built once; torch's threads change from span to span."""

    def __init__(self, spec: RunSpec, recorded: Path) -> None:
        plan = spec.plan
        self._num_unrolls = plan.unrolls_per_version
        self._cadence = load_algorithm(spec.config.algorithm.name).cadence(spec.config)
        self._feeder = Feeder(plan, recorded)
        rows = BufferRows.private(plan.num_actors)
        self._buffer_row, self._row = rows.gauges, Gauges({"learner": "learner"}).the("learner")
        self._buffer = build_buffer(
            spec,
            self._feeder.receiver,
            Progress(spec.config),
            rows,
        )
        self._core_wait = CoreWait()
        self._batches = _TimedBatches(self._buffer, self._core_wait)
        self._learner = self._build_learner(spec)
        self._family = Family()
        self._updates = Durations(self._core_wait)
        self._versions = Durations(self._core_wait)
        self._publish_s: list[float] = []
        self._receive_s: list[float] = []
        self._in_version_s = self._fed_s = self._fed_cpu_s = 0.0
        self._is_whole = False
        """The version in work was begun in this span."""
        self._learner.publish()
        self._publish_s.append(self._row[Gauge.PUBLISH_NS] / 1e9)
        self._feed(plan.warmup_unrolls)  # what a replay store holds in the middle of a run

    def _build_learner(self, spec: RunSpec) -> Learner:
        model = build_model(spec)
        update = load_algorithm(spec.config.algorithm.name).build_update(
            model, spec.spaces, spec.config
        )
        snapshot = Snapshot(model)
        self.policy_bytes = snapshot.nbytes
        board = ShmBoardWriter(os.memfd_create("tianji-policy"), snapshot.nbytes)
        return Learner(update, self._batches, board, snapshot.write_to, lambda: 0.0, self._row)

    def memory_bytes(self) -> int:
        return self._family.memory_bytes()

    def work(self, span: Span, threads: int) -> Trained:
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
                if self._version_figure().is_stable:
                    break
        return self._summary((self._cpu_s() - began_cpu_s) / (self._free_s() - began_s))

    def _forget(self) -> None:
        """Of what is rare, such as publishing, the last one stays: a span may see none."""
        self._updates.clear()
        self._versions.clear()
        self._is_whole = False
        self._batches.takes.keep_last()
        for rare in (self._publish_s, self._receive_s):
            del rare[:-1]

    def _cpu_s(self) -> float:
        return self._family.cpu_s() - self._fed_cpu_s

    def _free_s(self) -> float:
        """A clock that stands still while unrolls are fed, and while others hold the core."""
        return self._core_wait.free_s() - self._fed_s

    def _feed(self, count: int) -> None:
        cpu_s, clock_s = self._family.cpu_s(), self._core_wait.free_s()
        self._feeder.feed(count, self._learner.version, self._buffer.tick)
        self._fed_cpu_s += self._family.cpu_s() - cpu_s
        self._fed_s += self._core_wait.free_s() - clock_s

    def _tick(self) -> None:
        """As the learner's side does in a run."""
        if self._learner.is_between_versions:
            self._feed(self._num_unrolls)
            self._in_version_s, self._is_whole = 0.0, True
            self._updates.begin()
            self._versions.begin()
        num_received, is_new = self._buffer_row[Gauge.ITEMS], self._learner.is_between_versions
        published_ns = self._row[Gauge.PUBLISH_NS]
        began_ns = time.monotonic_ns()
        timed_tick(self._buffer, self._buffer_row)
        received_ns = time.monotonic_ns()
        worked = timed_tick(self._learner, self._row)
        ended_ns = time.monotonic_ns()
        assert worked, "the learner has all unrolls of a version, and does not move"
        if num_received < self._buffer_row[Gauge.ITEMS]:
            num_received = self._buffer_row[Gauge.ITEMS] - num_received
            self._receive_s.append((received_ns - began_ns) / 1e9 / num_received)
        self._in_version_s += (ended_ns - began_ns) / 1e9
        if not self._learner.is_between_versions:
            take_s = self._batches.last_take_s if is_new else 0.0
            self._updates.add(Piece((ended_ns - received_ns) / 1e9 - take_s))
            return
        self._publish_s.append((self._row[Gauge.PUBLISH_NS] - published_ns) / 1e9)
        if self._is_whole:
            self._versions.add(Piece(self._in_version_s))

    def _version_figure(self) -> Figure:
        versions = self._versions.quiet()[:, 0]
        if len(versions) >= FEWEST_BLOCKS:
            return figure_of(versions, 1)
        steps_per_update = self._row[Gauge.STEPS] / self._row[Gauge.UPDATES]
        num_updates = self._cadence.trained_steps_per_version / steps_per_update
        update = self._update_figure()
        rest_s = (
            self._num_unrolls * _median(self._receive_s)
            + median_s(self._batches.takes)
            + _median(self._publish_s)
        )
        return update._replace(median_s=num_updates * update.median_s + rest_s)

    def _update_figure(self) -> Figure:
        quiet = self._updates.quiet()
        return figure_of((quiet if len(quiet) else self._updates.raw())[:, 0], 1)

    def _summary(self, busy_cores: float) -> Trained:
        version = self._version_figure()
        receive_s = _median(self._receive_s)
        if isinstance(
            self._cadence, QueueCadence
        ):  # putting unrolls side by side is how they are received
            receive_s += median_s(self._batches.takes) / self._num_unrolls
        return Trained(
            version_s=version.median_s,
            cpu_s=busy_cores * version.median_s,
            noise=version.noise,
            update_s=self._update_figure().median_s,
            receive_s=receive_s,
            publish_s=_median(self._publish_s),
            memory_bytes=self.memory_bytes(),
        )


def _median(durations_s: list[float]) -> float:
    return figure_of(durations_s, 1).median_s
