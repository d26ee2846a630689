"""Two readers: people read standard error, programs read one JSON line on standard output.

The start-up time of a run is what the person waits, the interpreter included.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
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


_START_TIME = 19
"""Field 22 of /proc/PID/stat, counted after the process name: ticks since the system started."""


def process_started_ns(stat: Path = Path("/proc/self/stat")) -> int:
    """Start of this process on CLOCK_MONOTONIC; now, where the system does not tell."""
    now_ns = time.monotonic_ns()
    try:
        ticks = int(stat.read_text().rpartition(")")[2].split()[_START_TIME])
    except (OSError, IndexError, ValueError):
        return now_ns
    since_boot_ns = ticks * 10**9 // os.sysconf("SC_CLK_TCK")
    # Since the system started counts suspended time, CLOCK_MONOTONIC does not: take the age.
    return now_ns - (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - since_boot_ns)
