"""The lines of the live display that are on the screen, and how to erase them after a resize.

rich counts one row for every line that it drew. A terminal that is made narrower wraps lines that
are too long now, and one that is made lower moves its upper rows out of reach, until it grows.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import ConsoleDimensions
from rich.control import Control
from rich.segment import ControlType
from rich.text import Text


class Frame:
    """The lines that were drawn last."""

    def __init__(self) -> None:
        self._widths: list[int] = []
        self._size: ConsoleDimensions | None = None
        self._rows_above = 0
        """Rows of this frame above the top of the screen."""

    def drawn(self, lines: Sequence[Text], size: ConsoleDimensions) -> None:
        """Remember what is on the screen; rich cuts a frame that is higher than that."""
        self._widths = [min(len(line), size.width) for line in lines[: size.height]]
        self._size = size

    def erase_hidden_rows(self, size: ConsoleDimensions) -> Control | None:
        """Erase the rows that rich does not know of, if the terminal has another size now. The
        cursor is left where rich expects it."""
        if self._size is None or size == self._size:
            return None
        wrapped = sum(max(0, width - 1) // max(1, size.width) for width in self._widths)
        back = min(self._rows_above, max(0, size.height - self._size.height))
        rows = len(self._widths) + wrapped
        self._rows_above += max(0, rows - size.height) - back
        erase, up = (ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1)
        return Control(ControlType.CARRIAGE_RETURN, erase, *[up, erase] * (wrapped + back))
