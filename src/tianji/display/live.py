"""Lines that are drawn over themselves on a terminal, and the characters that they consist of.

rich counts one row for every line that it drew. A terminal that is made narrower wraps lines that
are too long now, and one that is made lower moves its upper rows out of reach, until it grows.
`Frame` erases these rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rich.console import Console, ConsoleDimensions
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType
from rich.text import Text

from tianji.display.stream import standard_error


class Marks(NamedTuple):
    """Characters to draw with."""

    done: str
    rest: str
    levels: str
    """From nothing to full."""
    dot: str
    more: str
    """Where text was cut."""


UNICODE = Marks("━", "─", " ▁▂▃▄▅▆▇█", "·", " …")
ASCII = Marks("#", "-", " .:-=+*%#", "|", " ...")


def to_columns(counts: Sequence[float], marks: Marks, highest: float | None = None) -> str:
    """A tiny histogram, one character each; what is not zero is never drawn as nothing.

    >>> to_columns([1, 8, 0, 4], UNICODE)
    '▁█ ▄'
    """
    top = highest or max(counts, default=0) or 1
    last = len(marks.levels) - 1
    heights = (min(last, max(round(last * count / top), count > 0)) for count in counts)
    return "".join(marks.levels[height] for height in heights)


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


class LiveLines:
    """A block of lines at the bottom of the terminal; what is printed appears above it.

    >>> screen = LiveLines()
    >>> screen.start()
    >>> screen.draw(lambda width: [Text("12 % done")])
    >>> screen.print("a warning", style="yellow")
    >>> screen.stop()
    """

    def __init__(self) -> None:
        self._console = Console(file=standard_error(), highlight=False)
        # rich's own refresh thread would draw whether or not there is anything new.
        self._live = Live(console=self._console, auto_refresh=False, redirect_stdout=False)
        self._frame = Frame()

    @property
    def marks(self) -> Marks:
        return ASCII if self._console.options.ascii_only else UNICODE

    def start(self) -> None:
        self._live.start()

    def draw(self, lines: Callable[[int], Iterable[Text]]) -> None:
        """lines: returns them for a width; wider ones are cut."""
        size = self._console.size
        if (control := self._frame.erase_hidden_rows(size)) is not None:
            self._console.control(control)
        drawn = list(lines(size.width))
        text = Text("\n", no_wrap=True, overflow="ellipsis").join(drawn)
        self._live.update(text, refresh=True)
        self._frame.drawn(drawn, size)

    def print(self, text: str, style: str = "") -> None:
        self._console.print(text, style=style, markup=False)

    def stop(self) -> None:
        """Leave the last state on the screen. A second call does nothing."""
        self._live.stop()
