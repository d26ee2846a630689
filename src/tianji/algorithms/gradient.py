"""The gradient of a loss, written into the flat gradient of a model.

gradient = Autograd(flatten(model), loss)          # or a closed form of algorithms/accelerators
prepared = gradient.prepare(batch, terms)          # once for a batch
for minibatch in parts_of(prepared):
    diagnostics = gradient.gradient(minibatch, terms)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from torch import Tensor

from tianji.devices.graphs import recorded
from tianji.models.tensors import FlatParameters

# Rows are what a loss is computed from, Terms its coefficients, Found what it reports beside its
# value, without gradient.
Rows = TypeVar("Rows")
Terms_contra = TypeVar("Terms_contra", contravariant=True)
Found_co = TypeVar("Found_co", covariant=True)


class Gradient(Protocol[Rows, Terms_contra, Found_co]):
    """Fills the flat gradient."""

    def prepare(self, batch: Rows, terms: Terms_contra) -> Rows:
        """Do once for a batch whatever does not depend on the parameters."""

    def gradient(self, minibatch: Rows, terms: Terms_contra) -> Found_co: ...


class Autograd(Generic[Rows, Terms_contra, Found_co]):
    """Differentiates a loss automatically: any network on any device.

    On a GPU it is a CUDA graph: what it returns is overwritten by the next minibatch."""

    def __init__(
        self, flat: FlatParameters, loss: Callable[[Rows, Terms_contra], tuple[Tensor, Found_co]]
    ) -> None:
        self._flat = flat
        self._loss = loss
        self._run = recorded(flat.vector_P.device, self.differentiate)

    def prepare(self, batch: Rows, terms: Terms_contra) -> Rows:
        return batch

    def gradient(self, minibatch: Rows, terms: Terms_contra) -> Found_co:
        return self._run(minibatch, terms)

    def differentiate(self, minibatch: Rows, terms: Terms_contra) -> Found_co:
        """Do what gradient() does, as a part of a larger graph."""
        self._flat.gradient_P.zero_()
        loss, found = self._loss(minibatch, terms)
        loss.backward()  # type: ignore[no-untyped-call]
        return found
