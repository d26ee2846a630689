"""What every benchmark shares: facts about the machine, medians, tables, JSON, fair turns.

    args = parser("what this measures").parse_args()
    report = Report("start_up", args)
    for contestant, seed in alternate(contestants, seeds):
        report.add(contestant, seed, measure(contestant, seed))
    report.table(headers, rows)
    report.check("ours / import", ratio, "<=", 2.0)
    return report.finish()

All figures are ratios between contestants of one run: seconds of another day mean nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from tianji.comparison import turns
from tianji.comparison.neighbours import QUIET_CORES, machine_use, others_cores

ROOT = Path(__file__).resolve().parent.parent
BULKY = ("metrics", "plan", "config", "run_dir", "lag_histogram", "checkpoint")
OUR_PACKAGES = ("tianji", "torch", "gymnasium", "numpy")

OTHERS = "others_cores"  # cores that other processes used while a contestant ran

alternate = turns.alternate

# ------------------------------------------------------------------------------------ facts


def machine_facts() -> dict[str, Any]:
    """What a reader needs to judge the figures; nothing that names the machine."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def versions(packages: Iterable[str] = OUR_PACKAGES) -> dict[str, str]:
    found = {}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def commit() -> str:
    """The commit that was measured, with a plus sign when the tree had changes."""
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        return head + ("+" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


# --------------------------------------------------------------------------------- statistics


def median(values: Sequence[float | None]) -> float | None:
    """Median where None means "never": it counts as infinite, and so may be the answer."""
    if not values:
        return None
    middle = statistics.median(math.inf if value is None else value for value in values)
    return None if math.isinf(middle) else middle


def spread(values: Sequence[float | None], digits: int = 2) -> str:
    """`1.70 (1.52-1.93)`, and `[4/5]` behind it when one of five never got there."""
    reached = [value for value in values if value is not None]
    if not reached:
        return f"never [0/{len(values)}]"
    middle = median(values)
    text = "never" if middle is None else f"{middle:.{digits}f}"
    text += f" ({min(reached):.{digits}f}-{max(reached):.{digits}f})"
    return text if len(reached) == len(values) else f"{text} [{len(reached)}/{len(values)}]"


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    return None if numerator is None or not denominator else numerator / denominator


# ---------------------------------------------------------------------------------- processes


class ContestantFailed(RuntimeError):
    """A contestant's process failed or said nothing that could be read."""


def run_json(
    command: Sequence[str | Path],
    *,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> dict[str, Any]:
    """Run a command whose last line on standard output is one JSON object."""
    before = machine_use()
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd or tempfile.gettempdir(),
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    after = machine_use()
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        tail = "\n".join((done.stderr or done.stdout).splitlines()[-15:])
        raise ContestantFailed(
            f"{Path(str(command[0])).name} {' '.join(map(str, command[1:]))} "
            f"ended with {done.returncode}:\n{tail}"
        )
    answer: dict[str, Any] = json.loads(lines[-1])
    answer["process_s"] = after.clock_s - before.clock_s
    answer[OTHERS] = others_cores(before, after)
    return answer


def tianji_command(*arguments: str) -> list[str]:
    """The `tianji` command of the interpreter that runs the benchmark."""
    return [str(Path(sys.executable).parent / "tianji"), *arguments]


def train(
    preset: str,
    *arguments: str,
    timeout_s: float = 300.0,
    env: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
) -> dict[str, Any]:
    """One `tianji train PRESET ... --json` as a user would call it, in a folder of its own.

    prefix: words before the command, such as those that run it in a network namespace.

    Returns its summary, with the run's `config`, `plan` and `metrics` (a list) beside it.
    """
    command = [*prefix, *tianji_command("train", preset, *arguments, "--json")]
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        summary = run_json(command, timeout_s=timeout_s, env=env, cwd=Path(scratch))
        (run,) = (Path(scratch) / "runs").iterdir()
        summary["config"] = yaml.safe_load((run / "config.yaml").read_text())
        summary["plan"] = json.loads((run / "plan.json").read_text())
        lines = (run / "metrics.jsonl").read_text().splitlines()
        summary["metrics"] = [json.loads(line) for line in lines]
    return summary


# ------------------------------------------------------------------------------------- report


def parser(description: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--quick", action="store_true", help="a smoke run; its figures mean nothing")
    made.add_argument("--out", type=Path, help="JSON file to write (quick runs write none)")
    made.add_argument("--strict", action="store_true", help="exit with 1 when a bound is missed")
    return made


def command_line(module: str, words: Sequence[str] | None = None) -> str:
    """Return the command for a report, without the folders of this machine."""
    given = sys.argv[1:] if words is None else words
    kept = [
        Path(word).name if before in ("--out", "--folder") else word
        for before, word in zip(["", *given], given, strict=False)
    ]
    return " ".join(["python", "-m", module, *kept])


class Report:
    """Collects one run, prints it for people and keeps it as JSON."""

    def __init__(self, question: str, args: argparse.Namespace, packages: Sequence[str] = ()):
        self._args = args
        self._out = args.out or (None if args.quick else _default_out(question))
        self._content: dict[str, Any] = {
            "question": question,
            "command": command_line(f"benchmarks.{question}.bench"),
            "commit": commit(),
            "machine": machine_facts(),
            "versions": versions((*OUR_PACKAGES, *packages)),
            "raw": [],
            "tables": [],
            "checks": [],
        }

    def note(self, **facts: Any) -> None:
        """Add facts to the JSON: settings, versions of peers, what was chosen and why."""
        self._content.update(facts)

    def add(self, contestant: str, seed: int, figures: Mapping[str, Any]) -> None:
        """Keep the raw figures of one measurement, and save at once: long runs get stopped."""
        kept = {key: value for key, value in figures.items() if key not in BULKY}
        self._content["raw"].append({"contestant": contestant, "seed": seed, **kept})
        self._write()

    def table(self, title: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self._content["tables"].append(
            {"title": title, "headers": list(headers), "rows": [list(row) for row in rows]}
        )
        print(f"\n{title}\n{format_table(headers, rows)}", flush=True)

    def check(self, what: str, value: float | None, sense: str, bound: float) -> None:
        """Hold a figure against what it must reach; None never passes."""
        met = value is not None and (value <= bound if sense == "<=" else value >= bound)
        self._content["checks"].append(
            {"what": what, "value": value, "sense": sense, "bound": bound, "met": met}
        )
        shown = "none" if value is None else f"{value:.3g}"
        print(f"{'met   ' if met else 'MISSED'}  {what}: {shown} (must be {sense} {bound:.3g})")

    def finish(self) -> int:
        self._content["machine"]["load_average_end"] = [round(x, 2) for x in os.getloadavg()]
        self._warn_if_disturbed()
        self._write()
        if self._out:
            print(f"\nwritten: {os.path.relpath(self._out)}")
        missed = [check for check in self._content["checks"] if not check["met"]]
        return 1 if missed and self._args.strict else 0

    def _warn_if_disturbed(self) -> None:
        """A busy machine spoils figures, so the run says it of itself."""
        others = [row[OTHERS] for row in self._content["raw"] if OTHERS in row]
        if not others:
            return
        self._content["machine"]["others_cores"] = {
            "median": statistics.median(others),
            "max": max(others),
        }
        if max(others) > QUIET_CORES:
            print(
                "\nThe machine was not quiet: other processes used "
                f"{statistics.median(others):.2f} cores (median), {max(others):.2f} at most. "
                "Repeat this on a quiet machine."
            )

    def _write(self) -> None:
        if self._out:
            self._out.parent.mkdir(parents=True, exist_ok=True)
            self._out.write_text(json.dumps(self._content, indent=1) + "\n")


def _default_out(question: str) -> Path:
    stamp = datetime.now(UTC).strftime("%Y-%m-%d-%H%M%S")
    return ROOT / "benchmarks" / question / "results" / f"{stamp}.json"


def format_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns also line up on a terminal."""
    cells = [list(headers), *[list(row) for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headers))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)
