"""What counts as a line of code, and in which room it counts."""

from collections import Counter

import pytest

from benchmarks.code_lines import TOP, code_lines, count, room_of, show


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("", 0),
        ("# a comment\n\n", 0),
        ('"""A docstring\n\nof three lines."""\n', 0),
        ("x = 1  # with a comment\n", 1),
        ("x = (\n    1,\n\n    # why\n    2,\n)\n", 4),
        ('text = """two\nlines"""\n', 2),
        ('def f():\n    """Says."""\n    return 1\n', 2),
        ('class A:\n    x: int = 1\n    """An attribute."""\n', 3),
        ('def f(): """Says."""\n', 0),
    ],
)
def test_only_lines_with_code_count(source, lines):
    assert code_lines(source) == lines


def test_a_line_counts_in_the_first_folder_below_the_package():
    assert room_of("src/tianji/models/networks/mlp.py") == "models"
    assert room_of("src/tianji/run.py") == TOP
    lines, files = count(
        iter([("src/tianji/actor/a.py", "x = 1\n"), ("src/tianji/actor/b.py", "y = 1\nz = 2\n")])
    )
    assert (lines, files) == ({"actor": 3}, {"actor": 2})


def test_a_room_that_is_gone_stays_in_the_table():
    shown = show(Counter({"actor": 5}), Counter({"actor": 1}), Counter({"old": 7}))
    old, total = (shown.splitlines()[row].replace(" ", "") for row in (3, 4))
    assert (old, total) == ("|old|0|0|7|-7|", "|total|1|5|7|-2|")
