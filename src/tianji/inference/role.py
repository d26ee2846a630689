"""Inference server: evaluates the policy for actors in other processes.

Takes      the latest policy (Board), rows of slots that actors ask for (Board)
Gives      the outputs of the network, with the version that made them
Waits for  a request
Unblocked  by an actor that has a new row of observations
Stops      between two ticks
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from tianji.algorithms.accelerators.lanes import LaneInference
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.interface import BoardReader, Bytes
from tianji.channels.requests import Answerer
from tianji.types import Clock


class InferenceServer:
    """One loop over all actors; `tick` evaluates every row that waits."""

    due_ns = 0

    def __init__(
        self,
        requests: Answerer,
        lanes: LaneInference,
        board: BoardReader,
        read: Callable[[Bytes], None],
        wake_actors: Sequence[Callable[[], None]],
        gauges: memoryview[int],
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        """read: copies the board's bytes into the model. wake_actors: rings each actor's bell."""
        self._requests = requests
        self._lanes = lanes
        self._board = board
        self._read = read
        self._wake_actors = wake_actors
        self._gauges = gauges
        self._now_ns = now_ns
        self._version = -1

    def tick(self) -> bool:
        """Evaluate the rows that wait, with the newest version of the policy."""
        requests, gauges = self._requests, self._gauges
        lanes = requests.waiting()
        if not len(lanes):
            gauges[Gauge.ACTIVITY] = Activity.WAITING
            return False
        gauges[Gauge.ACTIVITY] = Activity.INFERRING
        if self._board.version() != self._version:
            self._version = self._board.latest(self._read)
        asked = requests.requests(lanes)
        self._lanes.evaluate(asked, requests.outputs_LNA)
        requests.answer(lanes, self._version)
        for lane, _, _ in asked:
            self._wake_actors[lane]()
        gauges[Gauge.ITEMS] += len(asked)
        gauges[Gauge.VERSION] = self._version
        gauges[Gauge.UPLOADED_BYTES] = self._lanes.uploaded_bytes
        gauges[Gauge.HEARTBEAT_NS] = self._now_ns()
        return True

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
