"""A frame leaves nothing on the screen when the terminal gets another size."""

import re

import pytest
from rich.console import ConsoleDimensions
from rich.text import Text

from tianji.display.live import Frame


def rows_up(control):
    return len(re.findall("\x1b\\[1A", control.segment.text))


def frame(size, *widths):
    made = Frame()
    made.drawn([Text("x" * width) for width in widths], ConsoleDimensions(*size))
    return made


def test_a_terminal_of_the_same_size_needs_nothing():
    assert frame((80, 24), 80, 10).erase_hidden_rows(ConsoleDimensions(80, 24)) is None
    assert Frame().erase_hidden_rows(ConsoleDimensions(80, 24)) is None


@pytest.mark.parametrize(
    ("width", "wrapped"),
    [(120, 0), (80, 0), (79, 1), (60, 1), (40, 1), (39, 3), (27, 4), (26, 5), (1, 155)],
)
def test_rows_that_a_narrower_terminal_wrapped_are_erased(width, wrapped):
    control = frame((80, 24), 80, 10, 40, 0, 29).erase_hidden_rows(ConsoleDimensions(width, 25))
    assert rows_up(control) == wrapped


def test_rows_that_come_back_when_a_low_terminal_grows_are_erased_once():
    made = frame((80, 24), *[10] * 15)
    assert rows_up(made.erase_hidden_rows(ConsoleDimensions(80, 12))) == 0
    made.drawn([Text("x")] * 15, ConsoleDimensions(80, 12))
    assert rows_up(made.erase_hidden_rows(ConsoleDimensions(80, 13))) == 1
    made.drawn([Text("x")] * 15, ConsoleDimensions(80, 13))
    assert rows_up(made.erase_hidden_rows(ConsoleDimensions(80, 30))) == 2
    made.drawn([Text("x")] * 15, ConsoleDimensions(80, 30))
    assert rows_up(made.erase_hidden_rows(ConsoleDimensions(80, 40))) == 0
