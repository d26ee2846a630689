"""What algorithms share whose actors compute the gradients: the actors' sums of gradients, and the
learner's step for every aggregate of them.

P: all parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from tianji.algorithms.interface import Minibatch
from tianji.models.optimizers import Optimizer, linear
from tianji.models.tensors import FlatParameters, to_tensor
from tianji.types import Array, Batch, Unroll


class GatheredStep(Protocol):
    """Moves the parameters by an aggregate of gradients."""

    def step(self, gradient_P: Tensor, progress: float) -> dict[str, float]:
        """Take a step, and return its figures. progress: the share of max_env_steps that is
        done."""

    def state(self) -> dict[str, Tensor]: ...

    def load_state(self, state: Mapping[str, Tensor]) -> None: ...


class GatheredUpdate:
    """See algorithms/interface.py. A batch is the sum of all contributions and its weight."""

    def __init__(self, outer: GatheredStep) -> None:
        self.outer = outer
        self.state = outer.state
        self._metrics: dict[str, float] = {}

    def minibatch_steps(self, batch: Batch) -> int:
        return batch.num_steps

    def minibatches(self, batch: Batch, progress: float) -> Iterator[Minibatch]:
        self._metrics = {"gradients": float(batch.num_items)}
        gradient_P = to_tensor(batch.arrays["sum"] / float(batch.arrays["weight"][0]))
        yield Minibatch(lambda: gradient_P, partial(self._step, gradient_P, progress))

    @torch.no_grad()
    def _step(self, gradient_P: Tensor, progress: float) -> None:
        self._metrics |= self.outer.step(gradient_P, progress)

    def metrics(self) -> Mapping[str, float]:
        return self._metrics

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self.outer.load_state(state)


class Descent:
    """One step of an optimiser along the gradient of a loss, with a learning rate that may fall."""

    def __init__(
        self,
        flat: FlatParameters,
        optimizer: Optimizer,
        learning_rate: float,
        learning_rate_final: float | None,
    ) -> None:
        self._flat = flat
        self._optimizer = optimizer
        self._rates = learning_rate, learning_rate_final
        self.state = optimizer.state
        self.load_state = optimizer.load_state

    def step(self, gradient_P: Tensor, progress: float) -> dict[str, float]:
        learning_rate = linear(*self._rates, progress)
        self._flat.gradient_P.copy_(gradient_P)
        norm = self._optimizer.step(learning_rate, dict)
        return {"grad_norm": float(norm), "learning_rate": learning_rate}


class GradientSum(ABC):
    """The sum of an actor's gradients at one version, of an Estimator (algorithms/interface.py)
    that takes them at the parameters themselves, from all rows of an item."""

    def __init__(self, flat: FlatParameters) -> None:
        self.flat = flat
        self.sum_P: Array = np.zeros(len(flat.vector_P), np.float32)
        self.count = 0

    def look_ahead(self) -> None:
        """Stay at the parameters that were read."""
        return

    def begin(self, version: int) -> None:
        self.sum_P[:] = 0.0
        self.count = 0

    def load(self, sum_P: Array, count: int) -> None:
        self.sum_P[:] = sum_P
        self.count = count

    def is_complete(self, unroll: Unroll, t: int) -> bool:
        return False

    def add(self, unroll: Unroll, num_rows: int) -> None:
        self.differentiate(unroll, num_rows)
        self.sum_P += self.contribution()
        self.count += 1

    @abstractmethod
    def differentiate(self, unroll: Unroll, num_rows: int) -> None:
        """Fill the flat gradient with that of the rows before num_rows."""

    def contribution(self) -> Array:
        """Return what is added for the gradient that was just computed."""
        gradient_P: Array = self.flat.gradient_P.numpy()
        return gradient_P
