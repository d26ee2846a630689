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

    def __init__(self, gate: GatherGate, sampled_steps: int | None = None) -> None:
        """sampled_steps: of one gradient, where actors sample from memories of their own; None: a
        gradient is computed from the steps that came with it."""
        self._gate = gate
        self._sampled_steps = sampled_steps

    def put(self, slot: int, stamp: Stamp) -> int:
        has_gradient = self._gate.has_gradient(slot)
        self._gate.lanes.receiver.release(slot)
        return int(has_gradient)

    def num_held(self) -> int:
        return 0

    def take(self, version: int) -> Batch:
        gate, counts = self._gate, self._gate.taken
        steps = sum(stamp.env_steps for stamp in gate.counted if counts[stamp.actor])
        num_items, sampled = sum(counts), self._sampled_steps
        weight = sum(gate.rule.weigh(count)[1] for count in counts if count)
        return Batch(
            {"sum": gate.sum_P, "weight": np.array([weight])},
            tuple(gate.counted),
            num_items=num_items,
            num_steps=steps if sampled is None else num_items * sampled,
            unique_steps=steps,  # with memories: nearly every step is sampled at some time
        )
