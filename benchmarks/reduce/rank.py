"""One rank of benchmarks/reduce: a learner with a batch of its own, on its own or with others."""

from __future__ import annotations

import os
import time
from itertools import pairwise
from typing import NamedTuple

import torch

from benchmarks.rooms import ActorRoom, build_update, make_spec
from tianji.buffer.stores.queue import Queue
from tianji.channels.gauges import GAUGE_WORDS, Gauge
from tianji.channels.inproc import InprocBoard
from tianji.channels.interface import Bytes
from tianji.channels.layout import Layout
from tianji.channels.peers.cards import shared_cards
from tianji.channels.peers.gloo import GlooPeers
from tianji.channels.peers.interface import Joins, Peers, total
from tianji.channels.peers.shared import SharedPeers
from tianji.channels.peers.timed import TimedPeers
from tianji.engines.assembly.build import RunSpec
from tianji.learner.joined import JoinedLearner
from tianji.learner.meeting import Meeting
from tianji.learner.role import Learner
from tianji.types import Array, Batch

TIMEOUT_S = 120.0


class Network(NamedTuple):
    """A network and the minibatch it is trained with."""

    name: str
    hidden: tuple[int, ...]
    minibatch: int

    def spec(self) -> RunSpec:
        # Early stops would make versions of different lengths.
        algorithm = {
            "target_kl": None,
            "learning_rate": 1e-6,
            "epochs": 2,
            "minibatch_size": self.minibatch,
        }
        return make_spec("cartpole-ppo", algorithm=algorithm, model={"hidden": list(self.hidden)})


class Turn(NamedTuple):
    """Figures of one turn of one rank."""

    update_ms: float
    reduce_ms: float
    """Time in reductions per update, waiting for the other ranks included."""
    reduced_bytes: float
    """Bytes that it gave to reductions, per update."""
    other_bytes: float
    """Those of them that were not gradients."""
    version_ms: tuple[float, ...]
    """The duration of each version."""


class SameBatch:
    """A batch that our actor made, again and again."""

    def __init__(self, spec: RunSpec) -> None:
        room = ActorRoom(spec)
        self._queue = Queue(room.receiver, Layout.from_json(spec.plan.layout).env_axes())
        for _ in range(spec.plan.unrolls_per_version):
            slot = room.make_unroll()
            self._queue.put(slot, room.receiver.stamp(slot))
        self._room, self._batch = room, self._queue.take(0)

    def take(self) -> Batch:
        return self._batch

    def finish(self, batch: Batch, version: int, priorities: Array | None = None) -> None:
        """Do nothing: it is taken again."""


def write_nothing(payload: Bytes) -> None:
    """Publishing costs the same with and without other ranks."""


class LearnerRoom:
    """A learner, alone or with peers."""

    def __init__(self, spec: RunSpec, batches: SameBatch, peers: Peers | None) -> None:
        self._gauges = memoryview(bytearray(8 * GAUGE_WORDS)).cast("q")
        update, board = build_update(spec), InprocBoard(8)
        self.gradient_bytes = 4 * len(update._flat.gradient_P)
        parts = update, batches, board, write_nothing
        self._learner: Learner
        if peers is None:
            self._learner = Learner(*parts, lambda: 0.0, self._gauges)
        else:
            timed = TimedPeers(peers, self._gauges)
            assert isinstance(update, Joins)
            update.join(timed)
            self._learner = JoinedLearner(Meeting(timed), *parts, self._gauges)

    def run(self, num_versions: int) -> Turn:
        last = self._learner.version + num_versions
        before = list(self._gauges)
        ends_s = [time.perf_counter()]
        while self._learner.version < last:
            version = self._learner.version
            self._learner.tick()
            if self._learner.version > version:
                ends_s.append(time.perf_counter())
        passed_s = ends_s[-1] - ends_s[0]
        grown = [after - earlier for after, earlier in zip(self._gauges, before, strict=True)]
        updates, given = grown[Gauge.UPDATES], grown[Gauge.REDUCED_BYTES]
        gradients = self.gradient_bytes if given else 0
        return Turn(
            1e3 * passed_s / updates,
            grown[Gauge.COMBINE_NS] / 1e6 / updates,
            given / updates,
            given / updates - gradients,
            tuple(1e3 * (end_s - begin_s) for begin_s, end_s in pairwise(ends_s)),
        )


class Rank:
    """Both learners of one network, in the process of one rank, on one core."""

    def __init__(self, cards: list[int], parts: list[int], rank: int, network: Network) -> None:
        """cards, parts: file descriptors of all ranks; without parts, they are added up by gloo."""
        torch.set_num_threads(1)
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[rank % len(cores)]})
        own = shared_cards(rank, cards)
        self._peers: GlooPeers | SharedPeers = (
            SharedPeers(own, parts, TIMEOUT_S) if parts else GlooPeers(own, TIMEOUT_S)
        )
        spec = network.spec()
        batches = SameBatch(spec)
        self._alone = LearnerRoom(spec, batches, None)
        self._together = LearnerRoom(spec, batches, self._peers)
        self._alone.run(1)
        self._together.run(1)

    @property
    def gradient_bytes(self) -> int:
        return self._together.gradient_bytes

    def versions_that_take(self, seconds: float) -> int:
        """Return how many versions that is, the same on all ranks."""
        started_s = time.perf_counter()
        self._together.run(2)
        (passed_s,) = total(self._peers, [time.perf_counter() - started_s])
        return max(1, round(2 * seconds * self._peers.num_ranks / passed_s))

    def turn(self, is_together: bool, num_versions: int) -> Turn:
        """All ranks begin at the same time, also where they do not know of each other."""
        self._meet()
        return (self._together if is_together else self._alone).run(num_versions)

    def bare_ms(self, count: int) -> float:
        """Return what it takes to add up a vector of that size, and nothing else."""
        values = torch.zeros(self.gradient_bytes // 4)
        self._meet()
        started_s = time.perf_counter()
        for _ in range(count):
            self._peers.add(values)
        return 1e3 * (time.perf_counter() - started_s) / count

    def _meet(self) -> None:
        total(self._peers, [0.0])
