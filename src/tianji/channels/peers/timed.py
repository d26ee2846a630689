"""Peers whose reductions are counted in the learner's gauges: a group that waits for a slow one
shows it."""

from __future__ import annotations

import time

from torch import Tensor

from tianji.channels.gauges import Activity, Gauge
from tianji.channels.peers.interface import Peers
from tianji.types import Clock


class TimedPeers:
    """Adds the time of every reduction to COMBINE_NS."""

    def __init__(
        self, peers: Peers, gauges: memoryview[int], now_ns: Clock = time.monotonic_ns
    ) -> None:
        """gauges: of the learner."""
        self._peers = peers
        self._gauges = gauges
        self._now_ns = now_ns
        self.rank = peers.rank
        self.num_ranks = peers.num_ranks

    def add(self, values: Tensor) -> None:
        gauges = self._gauges
        before = gauges[Gauge.ACTIVITY]
        gauges[Gauge.ACTIVITY] = Activity.COMBINING
        started_ns = self._now_ns()
        self._peers.add(values)
        gauges[Gauge.COMBINE_NS] += self._now_ns() - started_ns
        gauges[Gauge.REDUCED_BYTES] += values.nbytes
        gauges[Gauge.ACTIVITY] = before
