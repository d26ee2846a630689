"""Buffer: keeps what arrives until the learner may have it, and grants actors their slots.

Takes      items (Stream), from all actors
Gives      batches to the learner, grants to the actors
Waits for  nothing; a tick that finds nothing says so
Unblocked  by an arrival, or by a version that the learner finished
Stops      between two ticks
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tianji.buffer.interface import Gate, Progress, Store
from tianji.channels.interface import Receiver
from tianji.records import BufferRecord, Lag
from tianji.types import Array, Batch, Episode, Stamp


class Buffer:
    """Receives items, lets the gate say when a batch is due, and takes it from the store."""

    def __init__(self, gate: Gate, store: Store, progress: Progress, first_row: int = 0) -> None:
        """first_row: rows before it repeat the previous unroll."""
        self._gate = gate
        self._lanes = gate.lanes
        self._store = store
        self._episodes = Episodes(self._lanes.receiver, progress, first_row)
        self._is_taken = False
        self.lag = LagGauge()
        self.items_put = 0
        """Items put, warm-up not counted: items_taken divided by it is the serial ratio."""
        self.items_taken = 0
        self._news: list[str] = []
        gate.starts_with(store.num_held())

    def tick(self) -> bool:
        """Carry out lane resets, receive what has arrived, grant what the gate allows."""
        worked = self._reset_lanes()
        worked |= self._receive_all()
        self._look_around()
        worked |= self._gate.tick()
        return worked

    def _reset_lanes(self) -> bool:
        """Reset the lanes of actors that were replaced."""
        presence = self._lanes.presence
        replaced = presence.replaced()
        for actor, resets in replaced:
            for slot in self._lanes.receiver.reset_lane(actor):
                self._receive(slot)
            self._gate.lost(actor)
            presence.lost(actor, resets)
        return bool(replaced)

    def _look_around(self) -> None:
        changes = self._lanes.presence.changes()
        for actor in changes.come:
            self._lanes.came(actor)
            self._gate.came(actor)
        for actor in changes.given_up:
            self._lanes.gave_up(actor)
            self._gate.gave_up(actor)

    def _receive_all(self) -> bool:
        worked = False
        while (slot := self._lanes.receiver.take()) is not None:
            self._receive(slot)
            worked = True
        return worked

    def _receive(self, slot: int) -> None:
        stamp = self._lanes.accept(slot)
        if stamp is not None and self._gate.arrived(stamp, slot):
            self._put(stamp, slot)

    def _put(self, stamp: Stamp, slot: int) -> None:
        self._episodes.add(stamp, slot)
        self.items_put += self._store.put(slot, stamp)

    def take(self) -> Batch | None:
        """Return a batch for the next version, when one is due."""
        if self._is_taken or not self._gate.may_take():
            return None
        self._receive_all()  # items that are no longer in work were sent
        entering = self._gate.entering()
        if entering is None:
            return None
        self._is_taken = True
        version = self._gate.version
        for stamp, slot, entered_at in entering:
            then = version if entered_at is None else entered_at
            self.lag.add(then - stamp.oldest_version)
            if slot is not None:
                self._put(stamp, slot)
        self._episodes.tell()
        batch = self._store.take(version)
        self.items_taken += batch.num_items
        return batch

    def finish(self, batch: Batch, version: int, priorities: Array | None = None) -> None:
        """Take back the batch from which the learner published `version`."""
        self._store.finish(batch, priorities)
        self._is_taken = False
        self._gate.finish(version)

    def continue_at(self, version: int) -> None:
        """Continue at this version after a resume."""
        self._gate.continue_at(version, is_first=self.items_taken == 0)

    @property
    def due_ns(self) -> int:
        """Time of the next work that needs no arrival; 0: there is none."""
        return self._gate.due_ns

    @property
    def discarded(self) -> int:
        """Items given up: too late here, or dropped by an actor."""
        return self._lanes.losses.items

    def news(self) -> list[str]:
        """Return what a person should know now, each thing once."""
        news, self._news = self._news, []
        return news + self._gate.news()

    def withdraw(self) -> bool:
        """Return True: a batch is taken only when the learner takes it."""
        return True

    def record(self) -> BufferRecord:
        return BufferRecord(
            items_put=self.items_put,
            items_taken=self.items_taken,
            lag_versions=self.lag.summary(),
            lag_histogram=self.lag.counts(),
            discarded_items=self.discarded,
            store=self._store.metrics(),
            gather=self._gate.rounds_record(),
        )

    def state(self, is_last: bool = False) -> dict[str, Any]:
        """Return the state between two versions. A resume makes items again that wait or are in
        work. is_last: the run ends, so that it may take long."""
        rounds = self._lanes.rounds()
        for stamp in self._gate.waiting():
            rounds[stamp.actor] -= 1
        return {
            "rounds": rounds,
            "items_put": self.items_put,
            "items_taken": self.items_taken,
            "store": self._store.state(is_last),
            "gate": self._gate.state(),
            "lag": self.lag.state(),
            "untold": self._episodes.state(),
            **self._lanes.losses.state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        self._lanes.load(state["rounds"])
        self.items_put = int(state["items_put"])
        self.items_taken = int(state["items_taken"])
        self._store.load_state(state["store"])
        self._gate.load_state(state.get("gate", {}))  # checkpoints of version 0.1 have none
        self.lag.load_state(state["lag"])
        self._episodes.load_state(state.get("untold", {}))  # older checkpoints have none
        self._lanes.losses.load_state(state)
        num_held = self._store.num_held()
        if state["store"].get("num_held", 0) > 0 and not num_held:
            self._news.append(REFILLED)
        self._gate.starts_with(num_held)


REFILLED = (
    "The checkpoint does not hold the replay store: it is filled again before training goes on. "
    "--save-replay saves it when a run is stopped."
)


class Episodes:
    """The progress of a run, read from the unrolls that have arrived; told in groups.

    episodes.add(stamp, slot)       # while the slot is ours
    episodes.tell()                 # all that were added since
    """

    def __init__(self, receiver: Receiver, progress: Progress, first_row: int = 0) -> None:
        """first_row: rows before it repeat the unroll before."""
        self._receiver = receiver
        self._progress = progress
        self._first_row = first_row
        self._found: list[tuple[tuple[int, int, int, int], Episode]] = []
        """Each with its place in time: round, row, actor, environment."""
        self._steps = 0
        self._latest_ns = 0

    def add(self, stamp: Stamp, slot: int) -> None:
        arrays, first = self._receiver.arrays, self._first_row
        lengths, returns = arrays["episode_length"][slot], arrays["episode_return"][slot]
        for row, env in np.argwhere(lengths[first:] > 0).tolist():
            at = row + first
            ended_ns = int(arrays["row_ns"][slot][at])
            length = int(lengths[at, env])
            episode = Episode(ended_ns, float(returns[at, env]), length, stamp.actor)
            self._found.append(((stamp.round, row, stamp.actor, env), episode))
        self._steps += stamp.env_steps
        self._latest_ns = stamp.finished_ns

    def tell(self) -> None:
        """Tell the episodes in order of time, so that arrival times do not change the run's end."""
        self._found.sort(key=lambda found: found[0])
        episodes = [
            episode if episode.finished_ns else episode._replace(finished_ns=self._latest_ns)
            for _, episode in self._found
        ]
        self._progress.add(episodes, self._steps)
        self._found, self._steps = [], 0

    def state(self) -> dict[str, Any]:
        """Return what entered the store and was not told yet. Times mean nothing after a resume."""
        return {
            "env_steps": self._steps,
            "episodes": [
                [*place, episode.episode_return, episode.length] for place, episode in self._found
            ],
        }

    def load_state(self, state: dict[str, Any]) -> None:
        self._steps = int(state.get("env_steps", 0))
        self._found = [
            ((turn, row, actor, env), Episode(0, episode_return, length, actor))
            for turn, row, actor, env, episode_return, length in state.get("episodes", ())
        ]


MOST = 64  # larger lags are counted in the last bin, and shown in max


class LagGauge:
    """Lag of everything that entered the store, in versions. A histogram is enough for mean, p95
    and max, and costs one addition per unroll."""

    def __init__(self) -> None:
        self.histogram = [0] * (MOST + 1)
        self._max = 0

    def add(self, lag: int) -> None:
        self.histogram[min(max(lag, 0), MOST)] += 1
        self._max = max(self._max, lag)

    def summary(self) -> Lag:
        total = sum(self.histogram)
        if not total:
            return Lag(mean=0.0, p95=0, max=0)
        mean = sum(lag * count for lag, count in enumerate(self.histogram)) / total
        return Lag(mean=mean, p95=self._percentile(0.95, total), max=self._max)

    def _percentile(self, share: float, total: int) -> int:
        seen = 0
        for lag, count in enumerate(self.histogram):
            seen += count
            if seen >= share * total:
                return lag
        return MOST

    def counts(self) -> list[int]:
        """The histogram without its empty end."""
        last = max((lag for lag, count in enumerate(self.histogram) if count), default=0)
        return self.histogram[: last + 1]

    def state(self) -> dict[str, Any]:
        return {"histogram": list(self.histogram), "max": self._max}

    def load_state(self, state: dict[str, Any]) -> None:
        self.histogram = list(state["histogram"])
        self._max = int(state["max"])
