"""The code of the styles is short, and no code outside programs/ depends on which style runs."""

import ast
import importlib
from pathlib import Path
from typing import get_args

import pytest

import tianji
from benchmarks.code_lines import code_lines
from tianji.algorithms.registry import BUILT_IN
from tianji.config.plan import Balance
from tianji.programs.registry import STYLES
from tianji.programs.style import Style

PACKAGE = Path(tianji.__file__).parent
PROGRAMS = PACKAGE / "programs"
MOST_LINES = 60
"""Code lines of one style."""
FILES = [
    path
    for folder in ("styles", "ablations")
    for path in sorted((PROGRAMS / folder).glob("*.py"))
    if path.stem != "__init__"
]
OTHERS = [path for path in sorted(PACKAGE.rglob("*.py")) if PROGRAMS not in path.parents]
UNAMBIGUOUS = set(STYLES) - {"tianji", "seed", *BUILT_IN, *get_args(Balance)}
"""Names of styles that are nothing else: no algorithm, no balance, not the package, no setting."""
FIGURES = PACKAGE / "figures"
"""Names the styles of the runs that it records."""


def styles_in(path):
    relative = path.relative_to(PACKAGE.parent).with_suffix("")
    module = importlib.import_module(".".join(relative.parts))
    return [one for one in vars(module).values() if isinstance(one, Style)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_style_has_at_most_60_code_lines(path):
    assert code_lines(path.read_text()) <= MOST_LINES * max(1, len(styles_in(path)))


def test_every_style_is_in_one_of_these_files():
    found = [style.name for path in FILES for style in styles_in(path)]
    assert sorted(found) == sorted(STYLES)


def is_style(node):
    """Return whether an expression is the style of a run: style, run.style, run["style"]."""
    match node:
        case ast.Name(id="style") | ast.Attribute(attr="style"):
            return True
        case ast.Subscript(slice=ast.Constant(value="style") | ast.Name(id="STYLE")):
            return True
    return False


def has_text(node):
    constants = (one.value for one in ast.walk(node) if isinstance(one, ast.Constant))
    return any(isinstance(value, str) and value != "style" for value in constants)


def decisions_by_style(source):
    """Return the lines that compare the style of a run with a name or match it."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        operands = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        is_compared = any(map(is_style, operands)) and any(map(has_text, operands))
        if is_compared or (isinstance(node, ast.Match) and is_style(node.subject)):
            lines.append(node.lineno)
    return lines


@pytest.mark.parametrize(
    ("source", "is_decision"),
    [
        ('config.style == "gala"', True),
        ('"gala" != style', True),
        ('run["style"] in ("gala", "seed")', True),
        ('values[STYLE] == "gala"', True),
        ('match config.style:\n    case "gala":\n        pass', True),
        ('run["style"] == one.name', False),
        ("path != STYLE", False),
        ('make_config(preset, style="gala")', False),
    ],
)
def test_decisions_by_style_are_found(source, is_decision):
    assert bool(decisions_by_style(source)) is is_decision


def test_no_code_outside_programs_depends_on_the_name_of_a_style():
    found = {path: decisions_by_style(path.read_text()) for path in OTHERS}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_no_text_outside_programs_and_figures_is_the_name_of_a_style():
    assert {"gala", "sample-factory", "lock-step", "unplanned"} <= UNAMBIGUOUS
    found = [
        (path, node.lineno)
        for path in OTHERS
        if FIGURES not in path.parents
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in UNAMBIGUOUS
    ]
    assert found == []
