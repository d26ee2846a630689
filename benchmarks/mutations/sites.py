"""Finds where a source file can be mutated, and makes the mutated text.

A site is identified by its file, the qualified name of its function, the operator and its ordinal
among the sites of this operator in this function. Other changes of the file keep that identity.
The text is spliced, not printed from the tree, so that all other lines stay as they are.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Messages are not behaviour, and Python 3.11 gives wrong places inside f-strings.
LEFT_ALONE = (ast.Assert, ast.Raise, ast.JoinedStr)
NOT_DROPPED = (*FUNCTIONS, ast.ClassDef, ast.Raise, ast.Pass, ast.Assert)
CONSTRUCTORS = ("__init__", "__post_init__")


@dataclass(frozen=True)
class Site:
    """One possible mutation: bytes `start` to `end` of the file become `after`."""

    file: str
    function: str
    operator: str
    ordinal: int
    line: int
    start: int
    end: int
    before: str
    after: str

    @property
    def id(self) -> str:
        return f"{self.file}::{self.function}::{self.operator}#{self.ordinal}"

    def apply(self, source: str) -> str:
        raw = source.encode()
        return (raw[: self.start] + self.after.encode() + raw[self.end :]).decode()


@dataclass(frozen=True)
class _Change:
    operator: str
    node: ast.expr | ast.stmt
    after: str


def find_sites(file: str, source: str) -> list[Site]:
    """Return all sites in the functions of a file, in the order of the text."""
    starts = _line_starts(source)
    raw = source.encode()
    sites: list[Site] = []
    for function, node in _functions(ast.parse(source), ""):
        ordinals: Counter[str] = Counter()
        for change in sorted(_changes(node), key=lambda found: _place(found.node)):
            start = starts[change.node.lineno - 1] + change.node.col_offset
            end = starts[(change.node.end_lineno or 0) - 1] + (change.node.end_col_offset or 0)
            place = (ordinals[change.operator], change.node.lineno, start, end)
            before = raw[start:end].decode()
            sites.append(Site(file, function, change.operator, *place, before, change.after))
            ordinals[change.operator] += 1
    return sites


def _place(node: ast.expr | ast.stmt) -> tuple[int, int, int, int]:
    # Nodes that begin at the same place differ by their end: the outer one comes first.
    return (
        node.lineno,
        node.col_offset,
        -(node.end_lineno or 0),
        -(node.end_col_offset or 0),
    )


def _line_starts(source: str) -> list[int]:
    starts = [0]
    for line in source.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    return starts


def _functions(
    node: ast.AST, prefix: str
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            name = f"{prefix}{child.name}"
            if isinstance(child, FUNCTIONS):
                yield name, child
            yield from _functions(child, f"{name}.")
        elif isinstance(child, ast.stmt):
            yield from _functions(child, prefix)


def _changes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[_Change]:
    yield from _early_return(function)
    for statement in function.body:
        yield from _walk(statement, function.name)


def _walk(node: ast.AST, function: str) -> Iterator[_Change]:
    """Visit a node and what is below it, but no inner function: that one has sites of its own."""
    if isinstance(node, (*LEFT_ALONE, *FUNCTIONS, ast.ClassDef)):
        return
    if isinstance(node, ast.expr):
        yield from _of_expression(node)
    elif isinstance(node, ast.stmt):
        yield from _of_statement(node, function)
    for name, value in ast.iter_fields(node):
        if name == "annotation":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child, function)


def _of_expression(node: ast.expr) -> Iterator[_Change]:
    if isinstance(node, ast.Compare):
        yield _Change("compare", node, _printed(node, ops=[_swapped(node.ops[0]), *node.ops[1:]]))
    elif isinstance(node, ast.BoolOp):
        yield _Change("and_or", node, _printed(node, op=_swapped(node.op)))
    elif isinstance(node, ast.BinOp) and type(node.op) in SWAPPED and not _is_text(node):
        yield _Change("plus_minus", node, _printed(node, op=_swapped(node.op)))
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield _Change("constant", node, str(node.value + 1))
    if isinstance(node, ast.IfExp):
        yield _Change("negate", node.test, f"(not ({ast.unparse(node.test)}))")


def _of_statement(node: ast.stmt, function: str) -> Iterator[_Change]:
    if isinstance(node, ast.If | ast.While):
        yield _Change("negate", node.test, f"(not ({ast.unparse(node.test)}))")
    if isinstance(node, ast.AugAssign) and type(node.op) in SWAPPED:
        yield _Change("plus_minus", node, _printed(node, op=_swapped(node.op))[1:-1])
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    stores = isinstance(node, ast.Assign) and any(
        isinstance(target, ast.Attribute) for target in node.targets
    )
    # A constructor without one of its attributes fails everywhere: it tells nothing of the tests.
    if (is_call or stores or isinstance(node, ast.AugAssign)) and function not in CONSTRUCTORS:
        yield _Change("drop", node, "pass")


def _early_return(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[_Change]:
    """The function returns None before its last statement."""
    has_docstring = ast.get_docstring(function, clean=False) is not None
    last = function.body[-1]
    says_nothing = isinstance(last, ast.Return) and _is_none(last.value)
    is_text = isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant)
    is_other = is_text or isinstance(last, NOT_DROPPED)
    if len(function.body) - has_docstring >= 2 and not says_nothing and not is_other:
        yield _Change("early_return", last, "return None")


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )


def _swapped(operator: ast.AST) -> ast.AST:
    return SWAPPED[type(operator)]()


def _printed(node: ast.AST, **changed: object) -> str:
    mutated = copy.copy(node)
    for name, value in changed.items():
        setattr(mutated, name, value)
    return f"({ast.unparse(mutated)})"
