"""Reports of the Pong yardsticks: one folder of results, each file named after its yardstick."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from benchmarks.harness import ROOT, Report, command_line

PACKAGES = ("ale-py", "envpool")


def make_report(yardstick: str, args: argparse.Namespace) -> Report:
    """Return the report of `python -m benchmarks.pong.YARDSTICK`."""
    from torch import cuda  # here, so that emulator processes start without torch

    if args.out is None and not args.quick:
        stamp = datetime.now(UTC).strftime("%Y-%m-%d-%H%M%S")
        args.out = ROOT / "benchmarks" / "pong" / "results" / f"{yardstick}-{stamp}.json"
    report = Report("pong", args, PACKAGES)
    report.note(
        yardstick=yardstick,
        command=command_line(f"benchmarks.pong.{yardstick}"),
        gpu=cuda.get_device_name() if cuda.is_available() else None,
    )
    return report
