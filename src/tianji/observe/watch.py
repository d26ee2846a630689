"""Rates and shares from the gauges, and where the time of every role went, all from one clock."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tianji.channels.gauges import CARRIED, Activity, Gauge, Gauges, worked_ns
from tianji.observe.processes import ProcessTimes, Seat
from tianji.records import (
    NOTHING_GATHERED,
    NOTHING_MEASURED,
    GatherShares,
    GpuUse,
    Measured,
    Rates,
    Spent,
)
from tianji.types import Clock

WINDOW_S, LONGEST_WINDOW_S = 3.0, 60.0
NUM_VERSIONS = 4
"""Rates are over a few seconds, or over the last few versions where these take longer: experience
comes in bursts then, and there may be none in any three seconds."""
Rows = dict[str, tuple[int, ...]]


class Seen(NamedTuple):
    """What the gauges showed over a stretch of time."""

    measured: Measured
    gathered: GatherShares
    """Zeros in a run that gathers no gradients."""


class _Names(NamedTuple):
    """The roles of a run, by kind."""

    actors: tuple[str, ...]
    buffers: tuple[str, ...]
    learners: tuple[str, ...]
    """One of each for every group, in the same order."""
    has_server: bool
    """A server infers for the actors."""


class _Sample(NamedTuple):
    at_ns: int
    rows: Rows
    core_ns: dict[str, int]
    no_core_ns: dict[str, int]
    parked_ns: int
    """Time that an actor was parked, mean over the actors."""


class Watch:
    """Reads the gauges from time to time; rates are over the last seconds or versions."""

    def __init__(self, gauges: Gauges, now_ns: Clock = time.monotonic_ns) -> None:
        self._gauges = gauges
        buffers, learners = tuple(gauges.of_kind("buffer")), tuple(gauges.of_kind("learner"))
        has_server = bool(gauges.of_kind("inference"))
        self._names = _Names(tuple(gauges.of_kind("actor")), buffers, learners, has_server)
        self._now_ns = now_ns
        self._samples: deque[_Sample] = deque()
        self._first: _Sample | None = None
        self._steady: _Sample | None = None
        """The first sample after the first version: start-up says nothing about the rest."""
        self._times = ProcessTimes()
        self._parked_ns = 0

    def watches(self, gauges: Gauges) -> bool:
        return gauges is self._gauges

    def first_step_ns(self) -> int:
        """Return when the first environment step of the run began; 0 before it."""
        actors = self._gauges.of_kind("actor").values()
        return min(filter(None, (row[Gauge.FIRST_STEP_NS] for row in actors)), default=0)

    def look(self, pids: Mapping[str, int] | None = None) -> None:
        """Take a sample. pids: the processes behind the workers, where they have their own."""
        if pids is not None:
            self._times.look(pids, self._seats())
        sample = self._sample()
        if not self.first_step_ns():
            self._samples.clear()  # nothing is produced while the roles start up
        elif len(self._samples) > 1 and self._samples[-1].at_ns == sample.at_ns:
            self._samples.pop()  # simulated time may stand still between two samples
        self._samples.append(sample)
        self._first = self._first or sample
        if self._steady is not None:
            self._forget_before(self._steady.at_ns)
        elif self._all_learn(self._first, sample):
            self._steady = sample
        self._forget_before(sample.at_ns - int(LONGEST_WINDOW_S * 1e9))
        few = 0 if self._steady is None else NUM_VERSIONS
        self._forget_before(sample.at_ns - int(WINDOW_S * 1e9), few)

    def _all_learn(self, first: _Sample, now: _Sample) -> bool:
        """Return whether every learner has made an update since the first sample."""
        return all(
            now.rows[learner][Gauge.UPDATES] > first.rows[learner][Gauge.UPDATES]
            for learner in self._names.learners
        )

    def _seats(self) -> dict[str, Seat]:
        kinds, rows = self._gauges.kinds, self._gauges.rows
        return {name: Seat(kinds[name], row[Gauge.THREAD_ID]) for name, row in rows.items()}

    def _forget_before(self, at_ns: int, num_versions: int = 0) -> None:
        """Forget older samples, but keep what shows so many versions of every learner. Two samples
        stay, however old, so that there is something to compare."""
        while len(self._samples) > 2 and self._samples[1].at_ns <= at_ns:
            if num_versions and self._versions_since(self._samples[1]) < num_versions:
                return
            self._samples.popleft()

    def _versions_since(self, sample: _Sample) -> int:
        """Return the versions of the slowest learner between a sample and the last one."""
        first, last = sample.rows, self._samples[-1].rows
        learners = self._names.learners
        return min(last[name][Gauge.VERSION] - first[name][Gauge.VERSION] for name in learners)

    def _sample(self) -> _Sample:
        at_ns = self._now_ns()
        rows = {name: tuple(row) for name, row in self._gauges.rows.items()}
        rows |= {learner: _counted(rows[learner]) for learner in self._names.learners}
        if self._samples:
            buffers = [rows[buffer] for buffer in self._names.buffers]
            share = _parked_share(buffers, len(self._names.actors))
            self._parked_ns += int(share * (at_ns - self._samples[-1].at_ns))
        told = [name for name, row in rows.items() if row[Gauge.CORE_NS]]  # by agents elsewhere
        core_ns = {name: rows[name][Gauge.CORE_NS] for name in told} | self._times.core_ns
        no_core_ns = {name: rows[name][Gauge.NO_CORE_NS] for name in told} | self._times.no_core_ns
        return _Sample(at_ns, rows, core_ns, no_core_ns, self._parked_ns)

    def now(self) -> Seen:
        """Return rates, shares and where the time went, over the last seconds or versions."""
        if not self._samples:
            return Seen(NOTHING_MEASURED, NOTHING_GATHERED)
        return _between(self._names, self._samples[0], self._samples[-1])

    def whole(self) -> Seen:
        """Return the same since the first version, up to the last sample."""
        if self._steady is None or self._samples[-1].at_ns <= self._steady.at_ns:
            return self.now()
        return _between(self._names, self._steady, self._samples[-1])

    def kinds(self) -> dict[str, str]:
        return dict(self._gauges.kinds)

    def activities(self) -> dict[str, str]:
        return {
            name: Activity(row[Gauge.ACTIVITY]).name.lower()
            for name, row in self._gauges.rows.items()
        }

    def silent_s(self) -> dict[str, float]:
        """Return the seconds since the last sign of life of every actor and of the learner. The
        buffer shares the learner's process, and no role waits for an evaluator."""
        rows = self._gauges.of_kind("actor") | self._gauges.of_kind("learner")
        now_ns = self._now_ns()
        return {
            name: max(0, now_ns - row[Gauge.HEARTBEAT_NS]) / 1e9
            for name, row in rows.items()
            if row[Gauge.HEARTBEAT_NS] and row[Gauge.ACTIVITY] != Activity.STOPPED
        }

    def resident_bytes(self) -> dict[str, int]:
        """Return the memory of every process that was running at the last sample."""
        return self._times.resident_bytes


def _counted(row: tuple[int, ...]) -> tuple[int, ...]:
    """Return the learner's row without the counts that a checkpoint has set."""
    return tuple(
        count - row[CARRIED[Gauge(gauge)]] if gauge in CARRIED else count
        for gauge, count in enumerate(row)
    )


def _parked_share(buffers: Sequence[tuple[int, ...]], num_actors: int) -> float:
    """Return the share of actors that are parked; a buffer that never parks leaves 0 there."""
    active = sum(buffer[Gauge.ACTIVE] for buffer in buffers)
    return 1 - min(active, num_actors) / num_actors if active and num_actors else 0.0


def _between(names: _Names, first: _Sample, last: _Sample) -> Seen:
    passed_ns = max(1, last.at_ns - first.at_ns)
    grown = {name: tuple(map(_growth, first.rows[name], row)) for name, row in last.rows.items()}
    core_ns = _growths(first.core_ns, last.core_ns)
    no_core_ns = _growths(first.no_core_ns, last.no_core_ns)
    measured = Measured(
        rates_per_s=_rates(names, grown, passed_ns / 1e9),
        busy_share={n: min(1.0, worked_ns(row) / passed_ns) for n, row in grown.items()},
        paced_share={
            n: min(1.0, (row[Gauge.WAIT_NS] + row[Gauge.COMBINE_NS]) / passed_ns)
            for n, row in grown.items()
        },
        span_s=passed_ns / 1e9,
        worked_s=_worked_s(names, grown),
        waited_s=_waited_s(names, grown, no_core_ns, last.parked_ns - first.parked_ns),
        core_s={name: ns / 1e9 for name, ns in core_ns.items()},
        gpu=_gpu_use(names, grown),
    )
    return Seen(measured, _gathered(names, grown, passed_ns / 1e9))


def _gpu_use(names: _Names, grown: Rows) -> GpuUse | None:
    """Return None where nothing was copied to a GPU."""
    uploaded = sum(row[Gauge.UPLOADED_BYTES] for row in grown.values())
    if not uploaded:
        return None
    steps = _total(grown, names.actors, Gauge.STEPS)
    waits, versions = (
        _total(grown, names.learners, gauge) for gauge in (Gauge.GPU_WAITS, Gauge.VERSION)
    )
    return GpuUse(
        busy_share=None,
        synchronisations_per_version=waits / max(1, versions),
        host_to_device_bytes_per_step=uploaded / max(1, steps),
    )


def _growth(before: int, after: int) -> int:
    return max(0, after - before)


def _growths(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Leave out a process that started in between: part of its time was its start."""
    return {name: _growth(before[name], ns) for name, ns in after.items() if name in before}


def _rates(names: _Names, grown: Rows, passed_s: float) -> Rates:
    return Rates(
        produced=_total(grown, names.actors, Gauge.STEPS) / passed_s,
        received=_total(grown, names.buffers, Gauge.RECEIVED_STEPS) / passed_s,
        trained=_total(grown, names.learners, Gauge.STEPS) / passed_s,
        unique_trained=_total(grown, names.learners, Gauge.UNIQUE_STEPS) / passed_s,
    )


def _total(grown: Rows, roles: Sequence[str], gauge: Gauge) -> int:
    return sum(grown[name][gauge] for name in roles)


def _gathered(names: _Names, grown: Rows, passed_s: float) -> GatherShares:
    def total(gauge: Gauge) -> int:
        return _total(grown, names.actors, gauge)

    done, dropped = total(Gauge.ITEMS), total(Gauge.DISCARDED)
    steps, dropped_steps = total(Gauge.STEPS), total(Gauge.DISCARDED_STEPS)
    late = _total(grown, names.buffers, Gauge.DISCARDED)
    late_steps = _total(grown, names.buffers, Gauge.DISCARDED_STEPS)
    return GatherShares(
        rounds_per_s=_total(grown, names.learners, Gauge.UPDATES) / passed_s,
        gradients_per_s=max(0, done - late) / passed_s,
        discarded_share=_share(dropped + late, done + dropped),
        discarded_step_share=_share(dropped_steps + late_steps, steps + dropped_steps),
        overdue_share=_share(total(Gauge.OVERDUE), done),
    )


def _share(part: int, whole: int) -> float:
    """Return at most 1: counts are not read in the same moment, so the part may be ahead."""
    return min(1.0, part / max(1, whole))


def _worked_s(names: _Names, grown: Rows) -> Spent:
    found = {}
    for name in names.actors:
        busy_ns, env_ns = grown[name][Gauge.BUSY_NS], grown[name][Gauge.ENV_NS]
        found[name] = _seconds(environment=env_ns, inference=busy_ns - env_ns)
    for learner, buffer in zip(names.learners, names.buffers, strict=True):
        publish_ns = grown[learner][Gauge.PUBLISH_NS]
        found[learner] = _seconds(
            updates=worked_ns(grown[learner]) - publish_ns,
            publishing=publish_ns,
            buffer=grown[buffer][Gauge.BUSY_NS],
        )
    return found


def _waited_s(names: _Names, grown: Rows, no_core_ns: Mapping[str, int], parked_ns: int) -> Spent:
    """`core` overlaps with the rest: a role may lack a core at work and on waking up."""
    found = {}
    for name in names.actors:
        answer_ns = grown[name][Gauge.ANSWER_NS]
        of_whom = "answers" if names.has_server else "replies"
        answers = {of_whom: answer_ns} if names.has_server or answer_ns else {}
        wait_ns = grown[name][Gauge.WAIT_NS] - sum(answers.values())
        parked = min(wait_ns, parked_ns)
        core = no_core_ns.get(name, 0)
        found[name] = _seconds(grant=wait_ns - parked, parked=parked, **answers, core=core)
    for learner, buffer in zip(names.learners, names.buffers, strict=True):
        wait_ns = grown[learner][Gauge.WAIT_NS]
        late = min(wait_ns, grown[buffer][Gauge.LATE_NS])
        combine_ns, peer_ns = (grown[learner][g] for g in (Gauge.COMBINE_NS, Gauge.PEER_NS))
        found[learner] = _seconds(
            unrolls=wait_ns - late - peer_ns,
            late_unrolls=late,
            **({"others": combine_ns} if combine_ns else {}),
            **({"peers": peer_ns} if peer_ns else {}),
            saving=grown[learner][Gauge.SAVE_NS],
            core=no_core_ns.get(learner, 0),
        )
    return found


def _seconds(**parts_ns: int) -> dict[str, float]:
    return {name: round(max(0, ns) / 1e9, 4) for name, ns in parts_ns.items()}
