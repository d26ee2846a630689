"""The updates of a batch: their steps, one by one, and the figures that they leave.

steps.begin(learning_rate)              # with every batch
steps.make(suspects)                    # when a gradient is there
steps.close({"loss": loss}, suspects)   # after the last one; nobody waits for a GPU
steps.read()                            # {"loss": 0.1, "grad_norm": 0.5}, when it has come
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from tianji.devices.waits import Figures
from tianji.models.optimizers import Optimizer
from tianji.models.tensors import Tensors

Suspects: TypeAlias = Callable[[], Tensors]
"""Returns what gradients were computed from, first causes first, to name one that is not finite."""


class Steps:
    """The steps of the batch in work, or of the last one."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.learning_rate = 0.0
        self._norms: list[float | Tensor] = []
        self._figures = Figures()
        self._suspects: Suspects = dict

    def begin(self, learning_rate: float) -> None:
        """Forget the batch before."""
        self.learning_rate = learning_rate
        self._norms = []
        self._figures.clear()

    def make(self, suspects: Suspects = dict) -> None:
        """Move the parameters by the gradient. suspects: of this update."""
        self._norms.append(self.optimizer.step(self.learning_rate, suspects))

    @property
    def is_any(self) -> bool:
        return bool(self._norms)

    @property
    def norm(self) -> float | Tensor:
        """The mean norm of the gradients of the batch, before clipping."""
        return sum(self._norms) / len(self._norms)

    def close(self, figures: Tensors, suspects: Suspects) -> None:
        """Take figures of the updates that were made. suspects: of all of them."""
        norm = torch.as_tensor(self.norm)
        self._figures.start(figures | {"grad_norm": norm} | self.optimizer.flags())
        self._suspects = suspects

    def read(self) -> dict[str, float]:
        """Return the figures; none if there are no new ones. TrainingDiverged if a step was left
        out because its gradient was not finite."""
        found = self._figures.read()
        if found:
            found = self.optimizer.check(found, self._suspects)
        self._suspects = dict
        return found
