"""Lines that are drawn over themselves on a terminal, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.console import Console
from rich.live import Live
from rich.text import Text

from tianji.display.frame import Frame
from tianji.display.marks import ASCII, UNICODE, Marks
from tianji.display.stream import standard_error


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
