"""The store of gradients: a batch is the sum of all actors' sums.

A slot that arrives is only a token: it is free again at once. The sums lie on the actors' boards
until the gate has added them up.
"""

from __future__ import annotations

import numpy as np

from tianji.buffer.gather.gate import GatherGate
from tianji.buffer.interface import Store
from tianji.types import Batch, Stamp


class Sums(Store):
    """Hands over the total of the round that the gate has closed."""

    def __init__(self, gate: GatherGate) -> None:
        self._gate = gate

    def put(self, slot: int, stamp: Stamp) -> int:
        self._gate.lanes.receiver.release(slot)
        return 1

    def num_held(self) -> int:
        return 0

    def take(self, version: int) -> Batch:
        gate, counts = self._gate, self._gate.taken
        steps = sum(stamp.env_steps for stamp in gate.counted if counts[stamp.actor])
        weight = sum(gate.rule.weigh(count)[1] for count in counts if count)
        return Batch(
            {"sum": gate.sum_P, "weight": np.array([weight])},
            tuple(gate.counted),
            num_items=sum(counts),
            num_steps=steps,
            unique_steps=steps,
        )
