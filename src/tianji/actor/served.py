"""Inference by a server: an actor asks for a row of its slot, and goes on with the answer.

N: environments, A: outputs.
"""

from __future__ import annotations

from collections.abc import Callable

from tianji.actor.assembler import Inference
from tianji.algorithms.interface import Acting
from tianji.channels.interface import BoardReader, Bytes
from tianji.channels.requests import Asker
from tianji.ops.returns import Floats
from tianji.types import Array, Unroll


class ServedRows:
    """See RowInference."""

    runs_alone = True
    uploaded_bytes = 0

    def __init__(self, asker: Asker, name: str, slots: Array) -> None:
        """slots: the field of this name in all slots."""
        self._asker = asker
        self._name = name
        self._address, self._stride = slots.ctypes.data, slots.strides[0]
        self._slot = 0
        self.is_ready = asker.is_answered

    def begin(self, unroll: Unroll) -> None:
        self._slot = (unroll[self._name].ctypes.data - self._address) // self._stride

    def submit(self, unroll: Unroll, t: int) -> None:
        self._asker.ask(self._slot, t)

    def collect(self, out_NA: Floats) -> None:
        out_NA[:] = self._asker.outputs_NA

    def finish(self, unroll: Unroll, end: int) -> None:
        """Do nothing: whoever reads the last observation finds it in the slot."""


class ServedInference(Inference):
    """Acts with the outputs of a server, whose answers say which version made them."""

    is_elsewhere = True

    def __init__(
        self,
        acting: Acting,
        board: BoardReader,
        read: Callable[[Bytes], None],
        asker: Asker,
    ) -> None:
        super().__init__(acting, board, read)
        self._reads_parameters: bool = getattr(acting, "reads_parameters", False)
        self._asker = asker
        self._read_version = -1

    def refresh(self) -> None:
        """Read parameters that actions need beside the network's outputs; the server reads the
        others."""
        if self._reads_parameters and self.newest() != self._read_version:
            self._read_version = self._board.latest(self._read)

    def collect(self, unroll: Unroll, t: int) -> Array:
        self.version = self._asker.version
        return super().collect(unroll, t)
