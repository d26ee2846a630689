"""Two readers: people read standard error, programs read one JSON line on standard output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any

from rich.console import Console, RenderableType

from tianji.display.stream import standard_error, unfailing

Report = Mapping[str, Any]
NOT_AS_ASKED = 1
"""Exit code of a command that did its work with another checkpoint than the one asked for."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command hands back.

    >>> Outcome({"version": "0.1.0"}, shown="0.1.0")
    """

    report: Report
    """The JSON object of --json."""
    exit_code: int = 0
    shown: RenderableType | None = None
    """What the person asked to see on standard output: help and version, nothing else."""


def people() -> Console:
    """Where everything for people goes."""
    return Console(file=standard_error(), highlight=False)


def tell_fallback(note: str) -> int:
    """Say why another checkpoint than the one asked for was used; returns the exit code."""
    if not note:
        return 0
    people().print(f"Warning: {note}", style="yellow", markup=False, soft_wrap=True)
    return NOT_AS_ASKED


@contextmanager
def only_json_on_stdout() -> Iterator[Callable[[Report], None]]:
    """Keep standard output for one line, whatever libraries and child processes print.

    File descriptor 1 points to standard error meanwhile: environments in C++ print too.
    """
    sys.stdout.flush()
    real_stdout = os.dup(1)
    os.dup2(2, 1)

    def emit(report: Report) -> None:
        from tianji.checkpoint.durable import to_plain

        line = json.dumps(to_plain(report), allow_nan=False, ensure_ascii=False) + "\n"
        with os.fdopen(os.dup(real_stdout), "w", encoding="utf-8") as stream:
            program = unfailing(stream)  # the exit code is right also where nobody reads the line
            program.write(line)
            program.flush()

    try:
        with redirect_stdout(sys.stderr):
            yield emit
    finally:
        sys.stdout.flush()
        os.dup2(real_stdout, 1)
        os.close(real_stdout)
