"""A learner and its actors that only cost time, with the real buffer, balance and learner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tianji.algorithms.interface import Minibatch
from tianji.buffer.interface import Gate, Store
from tianji.buffer.role import Buffer
from tianji.channels.gauges import Gauges
from tianji.channels.layout import STANDARD_FIELDS, Layout
from tianji.channels.orders import BufferRows
from tianji.config.run import RunConfig
from tianji.learner.progress import Progress
from tianji.learner.role import Learner
from tianji.types import Batch
from tianji.virtual.channels import VirtualBoard, VirtualStream
from tianji.virtual.clock import VirtualClock
from tianji.virtual.cluster import Cluster, Machines
from tianji.virtual.costs import LearnerParts
from tianji.virtual.groups.meeting import Agreement
from tianji.virtual.jobs import LearnerJob
from tianji.virtual.node import EQUAL, Node, Ranks
from tianji.virtual.roles import ActorEnd


def _compute_nothing() -> Any:
    return None


class CountingUpdate:
    """The optimiser steps of a batch, which only cost time."""

    def __init__(self, num_updates: int, trained_steps_per_version: int) -> None:
        self._num_updates = num_updates
        self._steps = trained_steps_per_version // num_updates

    def minibatches(self, batch: Batch, progress: float) -> Iterator[Minibatch]:
        for _ in range(self._num_updates):
            yield Minibatch(_compute_nothing, _compute_nothing)

    def metrics(self) -> Mapping[str, float]:
        return {}

    def minibatch_steps(self, batch: Batch) -> int:
        return self._steps

    def state(self) -> dict[str, Any]:
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Nothing was kept."""


class SimulatedGroup:
    """The parts that every simulated group has; the caller adds the actors and the store.

    group = SimulatedGroup(num_actors=2, num_slots=8, machines=Machines(cores_per_node=3))
    group.cluster.add_actor(job) ...
    group.start(gate, store, parts, CountingUpdate(1, 100))
    group.run_to(version=5)
    """

    def __init__(
        self,
        num_actors: int,
        num_slots: int,
        machines: Machines,
        clock: VirtualClock | None = None,
        nodes: Sequence[Node] | None = None,
    ) -> None:
        """clock, nodes: those of other groups, where several are simulated together."""
        self.clock = clock or VirtualClock()
        self.cluster = Cluster(self.clock, machines, num_actors, nodes)
        self.rows = BufferRows.private(num_actors)
        layout = Layout(tuple(STANDARD_FIELDS), num_rows=1, num_envs=1)
        self.stream = VirtualStream(layout, num_slots, num_actors, self.cluster)

    def actor_end(self, index: int) -> ActorEnd:
        sender, rows = self.stream.sender(index), self.rows.actors[index]
        return ActorEnd(
            index, sender, lambda: self.cluster.version_at(index), rows, self.clock.now_ns
        )

    def start(
        self,
        gate: Gate,
        store: Store,
        parts: LearnerParts,
        update: CountingUpdate,
        idle_ns: int = 0,
        ranks: Ranks = EQUAL,
        agreement: Agreement | None = None,
    ) -> None:
        """Publish the first version and wake everybody up.

        agreement: how the learner waits for those of other groups."""
        progress = Progress(RunConfig(algorithm="ppo"))  # nobody asks it whether the run is over
        self.buffer = buffer = Buffer(gate, store, progress)
        row = Gauges({"learner": "learner"}).the("learner")
        self.learner = learner = Learner(
            update,
            buffer if agreement is None else agreement.batches(buffer),
            VirtualBoard(0, self.cluster),
            lambda _payload: None,
            lambda: 0.0,
            row,
            self.clock.now_ns,
        )

        def tick() -> bool:
            worked = buffer.tick()
            return learner.tick() or worked

        def due_ns() -> int:
            return buffer.due_ns if buffer.due_ns > self.clock.now_ns() else 0

        job = LearnerJob(tick, parts, self.rows.gauges, row, due_ns, agreement)
        self.cluster.add_learner(job, parts.cores, idle_ns, ranks)
        self._agreement = agreement
        if agreement is not None:
            agreement.member.worker = self.cluster.learner
        learner.publish()
        self.cluster.start()

    @property
    def waited_s(self) -> float:
        """Return the time in which the learner has waited for those of other groups."""
        return 0.0 if self._agreement is None else self._agreement.member.waited_ns / 1e9

    def run_to(self, version: int) -> None:
        while self.learner.version < version:
            if not self.clock.step():
                raise AssertionError("no role has anything to do: the balance is wrong")
