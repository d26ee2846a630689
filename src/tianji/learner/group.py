"""A group: one learner with its update, and the buffer that its actors fill.

A run has one group or several. What belongs to the run as a whole (progress, targets, checkpoints,
reports) is in training.py.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from tianji.algorithms.interface import Update
from tianji.buffer.interface import BufferEnd
from tianji.channels.gauges import CARRIED, Gauge, timed_tick
from tianji.channels.peers.interface import gathered
from tianji.devices.waits import to_host
from tianji.learner.joined import JoinedLearner
from tianji.learner.meeting import NO_CHECKPOINT, check_same, oldest_of_all
from tianji.learner.role import Learner
from tianji.models.tensors import flatten
from tianji.records import GroupRecord, Ratio
from tianji.types import Clock


@dataclass(frozen=True, slots=True)
class GroupGauges:
    """The rows of a group's roles."""

    learner: memoryview[int]
    buffer: memoryview[int]
    actors: Sequence[memoryview[int]]


class StepCounts(NamedTuple):
    """Environment steps so far, at every stage they pass."""

    produced: int
    received: int
    trained: int
    unique_trained: int


class Group:
    """`tick_buffer` and `tick_learner` move its two roles on."""

    def __init__(
        self,
        model: torch.nn.Module,
        update: Update,
        buffer: BufferEnd,
        learner: Learner,
        gauges: GroupGauges,
        ratio: float | None,
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        """ratio: items to be taken per item put; None where that is left to the speeds."""
        self._model = model
        self._update = update
        self.buffer = buffer
        self.learner = learner
        self.gauges = gauges
        self._ratio = ratio
        self._now_ns = now_ns
        self._has_continued = False
        """True after load_state()."""

    def tick_buffer(self) -> bool:
        return timed_tick(self.buffer, self.gauges.buffer, self._now_ns)

    def tick_learner(self) -> bool:
        return timed_tick(self.learner, self.gauges.learner, self._now_ns)

    def start(self) -> None:
        """Publish the first version. Learners that make updates together make sure first that all
        of them have the same parameters, and begin at the same version."""
        if isinstance(self.learner, JoinedLearner):
            peers = self.learner.meeting.peers
            if not self._has_continued:
                oldest_of_all(peers, NO_CHECKPOINT)
            self.learner.share()
            check_same(peers, flatten(self._model).vector_P)
            highest = max(version for (version,) in gathered(peers, [self.learner.version]))
            if highest > self.learner.version:
                self.continue_at(int(highest))
        self.learner.publish()

    def continue_at(self, version: int) -> None:
        """Set the next version to publish; versions never fall."""
        self.learner.version = version
        self.buffer.continue_at(version)

    def record(self) -> GroupRecord:
        """Return where the group stands."""
        buffer = self.buffer.record()
        actual = buffer["items_taken"] / max(1, buffer["items_put"])
        record = GroupRecord(
            updates=self.gauges.learner[Gauge.UPDATES],
            version=self.learner.version,
            lag_versions=buffer["lag_versions"],
            lag_histogram=buffer["lag_histogram"],
            ratio=Ratio(target=self._ratio, actual=actual),
            discarded_items=buffer["discarded_items"],
            blocked_inserts=self.gauges.buffer[Gauge.BLOCKED],
            blocked_s=self.gauges.buffer[Gauge.BLOCKED_NS] / 1e9,
            env_failures=sum(row[Gauge.ENV_FAILURES] for row in self.gauges.actors),
            learner={**self.learner.metrics, **buffer["store"]},
        )
        if (rounds := buffer["gather"]) is not None:
            record["gather"] = rounds
        if self.learner.combination is not None:
            waited_s = self.gauges.learner[Gauge.PEER_NS] / 1e9
            record["peer_age"] = self.learner.combination.record(waited_s)
        return record

    def first_step_ns(self) -> int:
        """Return when the first environment step began (CLOCK_MONOTONIC); 0: not yet."""
        begun = [row[Gauge.FIRST_STEP_NS] for row in self.gauges.actors]
        return min(filter(None, begun), default=0)

    def steps(self) -> StepCounts:
        return StepCounts(
            sum(row[Gauge.STEPS] for row in self.gauges.actors),
            self.gauges.buffer[Gauge.RECEIVED_STEPS],
            self.gauges.learner[Gauge.STEPS],
            self.gauges.learner[Gauge.UNIQUE_STEPS],
        )

    # Checkpoints.

    def weights(self) -> dict[str, torch.Tensor]:
        """Return copies of the model's weights, on the host whatever its device."""
        weights = self._model.state_dict().items()
        return to_host({name: value if value.is_cuda else value.clone() for name, value in weights})

    def state(self, is_last: bool = False) -> dict[str, Any]:
        """Return copies of everything else that the group needs to continue.

        is_last: the run ends, so that it may take long."""
        row = self.gauges.learner
        return {
            "update": to_host(self._update.state()),
            "buffer": self.buffer.state(is_last),
            "updates": row[Gauge.UPDATES],
            "trained_steps": row[Gauge.STEPS],
            "unique_steps": row[Gauge.UNIQUE_STEPS],
        }

    def load_state(self, weights: Mapping[str, torch.Tensor], state: Mapping[str, Any]) -> None:
        self._has_continued = True
        self._model.load_state_dict(dict(weights))
        self._update.load_state(state["update"])
        self.buffer.load_state(state["buffer"])
        self._carry_over(Gauge.UPDATES, state["updates"])
        self._carry_over(Gauge.STEPS, state["trained_steps"])
        self._carry_over(Gauge.UNIQUE_STEPS, state["unique_steps"])

    def _carry_over(self, gauge: Gauge, count: int) -> None:
        """Set a count, and note how much of it was not counted here: rates leave that out."""
        row = self.gauges.learner
        row[CARRIED[gauge]] += count - row[gauge]
        row[gauge] = count
