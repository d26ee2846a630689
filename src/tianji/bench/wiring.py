"""What sender and receiver processes of the experiment share beside the stream itself."""

from __future__ import annotations

from enum import IntEnum

from tianji.channels.memory import BELL_BYTES, Bell, Segment

_STOP_BYTES = 64
_ROW_BYTES = 64


class Row(IntEnum):
    """What one sender tells about itself; written when it is told to stop."""

    CPU_NS = 0
    """Processor time of its loop."""
    SAMPLED_NS = 1
    """Time spent sampling, as the sender measured it."""


class Wiring:
    """A word that says stop, a bell for every process, a row of figures per sender."""

    def __init__(self, segment: Segment, num_senders: int) -> None:
        self.segment = segment
        self._stop = segment.words(0, 1)
        offsets = [_STOP_BYTES + BELL_BYTES * index for index in range(num_senders + 1)]
        self.receiver_bell, *self.sender_bells = [Bell(segment, offset) for offset in offsets]
        rows = offsets[-1] + BELL_BYTES
        self.rows = [segment.words(rows + _ROW_BYTES * i, len(Row)) for i in range(num_senders)]

    @staticmethod
    def create(num_senders: int) -> Wiring:
        size = _STOP_BYTES + BELL_BYTES * (num_senders + 1) + _ROW_BYTES * num_senders
        wiring = Wiring(Segment.create("bench", size), num_senders)
        for bell in (wiring.receiver_bell, *wiring.sender_bells):
            bell.initialise()
        return wiring

    def is_stopping(self) -> bool:
        return self._stop[0] != 0

    def stop(self) -> None:
        """Tell every sender, also one that sleeps."""
        self._stop[0] = 1
        for bell in self.sender_bells:
            bell.ring()
