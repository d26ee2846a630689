"""An actor's own replay memory: gradients are computed from transitions that the actor samples from
its newest steps, not from those that it has just made (Gorila).

It lies in the actor's process and is lost with it: an actor that takes over fills its own.
"""

from __future__ import annotations

import math

import numpy as np

from tianji.algorithms.interface import Estimator, OwnReplay
from tianji.buffer.stores.rings import Rings
from tianji.buffer.stores.sampling import UniformSampler
from tianji.types import Array, Unroll


class ReplayedEstimator:
    """An Estimator (algorithms/interface.py) that gives another one sampled transitions."""

    def __init__(
        self,
        estimator: Estimator,
        rings: Rings,
        memory: OwnReplay,
        num_actors: int,
        gamma: float,
        seed: int,
    ) -> None:
        """rings: of one lane, for this actor alone. num_actors: they share out the warm-up."""
        self._estimator = estimator
        self._rings = rings
        self._sampler = UniformSampler(rings)
        self._rng = np.random.default_rng(seed)
        self._gamma = gamma
        self._batch_size, self._n_step = memory.batch_size, memory.n_step
        self._warmup_rows = math.ceil(memory.warmup_steps / (num_actors * rings.num_envs))
        self._rows_begun = 0
        """Rows that items may begin in, those included that are given up again."""
        self._is_filled = False
        self._version = 0
        self.look_ahead = estimator.look_ahead
        self.load = estimator.load
        self.is_complete = estimator.is_complete

    @property
    def sum_P(self) -> Array:
        return self._estimator.sum_P

    @property
    def count(self) -> int:
        return self._estimator.count

    def begin(self, version: int) -> None:
        self._version = version
        self._estimator.begin(version)

    def add(self, unroll: Unroll, num_rows: int) -> None:
        """Store the new rows, and add the gradient of a sample once there are enough."""
        slots = {name: array[None] for name, array in unroll.items()}
        self._rows_begun += len(self._rings.put(slots, 0, 0, self._version).begun)
        self._is_filled = self._is_filled or self._has_warmed_up()
        if not self._is_filled:
            return
        items = self._sampler.draw(self._rng, self._batch_size, self._batch_size).items
        self._estimator.add(self._rings.gather(items, self._gamma, self._n_step), num_rows)

    def _has_warmed_up(self) -> bool:
        """Return whether the rows of the warm-up were made, and a step is held that an item can
        begin with: the first rows repeat an unroll that was never made. Rows that were given up
        count, because short episodes may make the memory give up rows before it is full."""
        begin, count = self._rings.begins()[0], self._rings.counts()[0]
        valid_RN = self._rings.arrays["valid"][0]
        rows = np.arange(begin, begin + count) % len(valid_RN)
        return self._rows_begun >= self._warmup_rows and bool(valid_RN[rows].any())
