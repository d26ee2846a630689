"""Count the code lines of src/tianji by room, without blank lines, comments and docstrings.

python -m benchmarks.code_lines                     the working tree
python -m benchmarks.code_lines --commit HEAD~20    a commit, and the difference to the working tree
python -m benchmarks.code_lines --json
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import subprocess
import sys
import tarfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import ROOT, format_table

PACKAGE = "src/tianji"
TOP = "(top)"
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """Return the number of lines that hold at least one token of code.

    Docstrings of modules, classes and functions do not count. Every line of any other string does,
    also where the string stands below an attribute to describe it.
    """
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def room_of(path: str) -> str:
    """Return the first folder below the package; files of the package itself are `(top)`."""
    parts = Path(path).relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else TOP


def tree_sources(root: Path) -> Iterator[tuple[str, str]]:
    for path in sorted((root / PACKAGE).rglob("*.py")):
        yield str(path.relative_to(root)), path.read_text()


def commit_sources(commit: str) -> Iterator[tuple[str, str]]:
    archive = subprocess.run(
        ["git", "archive", commit, PACKAGE], cwd=ROOT, check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for member in files:
            if member.name.endswith(".py") and (file := files.extractfile(member)) is not None:
                yield member.name, file.read().decode()


def count(sources: Iterator[tuple[str, str]]) -> tuple[Counter[str], Counter[str]]:
    """Return code lines and files by room."""
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for path, source in sources:
        lines[room_of(path)] += code_lines(source)
        files[room_of(path)] += 1
    return lines, files


def show(lines: Counter[str], files: Counter[str], before: Counter[str] | None) -> str:
    headers = ["room", "files", "code lines"] + ([] if before is None else ["before", "change"])
    rows = []
    for room in [*sorted({*lines, *(before or {})}), "total"]:
        is_total = room == "total"
        now = lines.total() if is_total else lines[room]
        row = [room, str(files.total() if is_total else files[room]), f"{now:,}"]
        if before is not None:
            then = before.total() if is_total else before[room]
            row += [f"{then:,}", f"{now - then:+,}"]
        rows.append(row)
    return format_table(headers, rows)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--commit", help="also count this commit, and show the difference")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(argv)
    lines, files = count(tree_sources(ROOT))
    before = count(commit_sources(args.commit))[0] if args.commit else None
    if args.json:
        found = {"total": lines.total(), "by_room": lines}
        if before is not None:
            found |= {"before": {"total": before.total(), "by_room": before}}
        print(json.dumps(found))
    else:
        print(show(lines, files, before))
    return 0


if __name__ == "__main__":
    sys.exit(main())
