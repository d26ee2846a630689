"""A model and the state of its update as bytes, from which a reader can take the next step itself.

The policy comes first: readers that only act or evaluate read the beginning alone.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from tianji.algorithms.interface import Update
from tianji.models.tensors import Snapshot


class WholeSnapshot:
    """A Snapshot of the model followed by update.state()."""

    def __init__(self, model: nn.Module, update: Update) -> None:
        self._policy = Snapshot(model)
        self._update = update
        self._template = update.state()
        sizes = [tensor.nbytes for tensor in self._template.values()]
        self._starts = np.cumsum([self._policy.nbytes, *sizes]).tolist()
        self.nbytes: int = self._starts[-1]

    def write_to(self, buffer: NDArray[np.uint8]) -> None:
        self._policy.write_to(buffer[: self._policy.nbytes])
        state = self._update.state()
        for name, part in self._parts(buffer).items():
            part[:] = np.frombuffer(state[name].contiguous().numpy().tobytes(), np.uint8)

    def read_from(self, buffer: NDArray[np.uint8]) -> None:
        self._policy.read_from(buffer[: self._policy.nbytes])
        state = {
            name: torch.frombuffer(bytearray(part.tobytes()), dtype=like.dtype).view(like.shape)
            for (name, part), like in zip(
                self._parts(buffer).items(), self._template.values(), strict=True
            )
        }
        self._update.load_state(state)

    def _parts(self, buffer: NDArray[np.uint8]) -> dict[str, NDArray[np.uint8]]:
        bounds = zip(self._template, self._starts, self._starts[1:], strict=False)
        return {name: buffer[start:end] for name, start, end in bounds}
