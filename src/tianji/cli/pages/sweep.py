"""What `tianji sweep` prints at its end: the trials, the best one, and what to do with it."""

from __future__ import annotations

import shlex
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table

from tianji.cli.output import Outcome
from tianji.cli.pages.tables import fact_list, figures_table, run_name, show_block
from tianji.sweep.report import SweepReport, TrialFigures
from tianji.wording import counted, to_count, to_seconds, to_value

INTERRUPTED = 130
MOST_ROWS = 20
"""More trials than this are listed in sweep.json only."""
DIGITS = 4


def show_sweep(report: SweepReport) -> Outcome:
    """Print the closing block of a sweep and return its outcome."""
    style, exit_code = ("green", 0) if report["best"] is not None else ("red", 1)
    if report["missing"]:
        style, exit_code = "yellow", INTERRUPTED
    title = f"{report['env']}, {report['algorithm']}, {counted(_num_trials(report), 'trial')}"
    parts: list[RenderableType] = [_table(report), ""] if report["trials"] else []
    parts.append(fact_list(_facts(report)))
    show_block(title, style, parts, _commands(report))
    return Outcome({**report}, exit_code)


def _num_trials(report: SweepReport) -> int:
    """Return how many trials there are to be; an earlier session may have asked for more."""
    return max(report["num_trials"], len(report["trials"]))


def ranked(report: SweepReport) -> list[TrialFigures]:
    """Return the trials, the best first; those without a value in the order of their returns."""
    sign = 1.0 if report["direction"] == "minimize" else -1.0

    def place(trial: TrialFigures) -> tuple[bool, float, float]:
        value, mean = trial["value"], trial["mean_return_100"]
        worst = float("inf")
        return value is None, sign * (value or 0.0), worst if mean is None else -mean

    return sorted(report["trials"], key=place)


def _table(report: SweepReport) -> Table:
    is_time = report["objective"] == "time"
    columns = ["trial", "result", *(["to target"] if is_time else []), "return", "steps"]
    names = (name.replace("_", "\n") for name in report["search"])  # short lines
    table = figures_table([*columns, *names])
    table.columns[0].style, table.columns[1].justify = "cyan", "left"
    for trial in ranked(report)[:MOST_ROWS]:
        row = [str(trial["number"]), trial["state"]]
        row += [to_seconds(trial["time_to_target_s"])] if is_time else []
        row += [to_value(trial["mean_return_100"], DIGITS), to_count(trial["env_steps"])]
        table.add_row(*row, *(_shown(trial["settings"].get(name)) for name in report["search"]))
    return table


def _shown(text: str | None) -> str:
    """Return a searched value in few characters."""
    try:
        return "-" if text is None else f"{float(text):.{DIGITS}g}"
    except ValueError:
        return text or "-"


def _facts(report: SweepReport) -> dict[str, str]:
    facts = {}
    best = report["best"]
    if best is not None:
        values = ", ".join(f"{name} {_shown(text)}" for name, text in best["settings"].items())
        facts["best"] = f"trial {best['number']}: {values}"
    if best is not None and best["value"] is None:
        facts["note"] = "No trial has reached the target; the best one has the highest return."
    failed = [trial for trial in report["trials"] if "first_cause" in trial]
    for trial in failed[:1]:
        facts[f"trial {trial['number']} failed"] = trial["first_cause"]
    if len(failed) > 1:
        facts["more failures"] = f"{len(failed) - 1}, see sweep.json"
    if (hidden := len(report["trials"]) - MOST_ROWS) > 0:
        facts["not listed"] = f"{counted(hidden, 'trial')}, see sweep.json"
    if report["missing"]:
        facts["missing"] = counted(report["missing"], "trial")
    facts["folder"] = f"{report['run_dir']}/"
    if report["picture"] is not None:
        facts["picture"] = report["picture"]
    return facts


def _commands(report: SweepReport) -> dict[str, str]:
    commands = {}
    if report["best_file"] is not None and report["best"] is not None:
        commands[f"tianji train {shlex.quote(report['best_file'])}"] = (
            "train with the best settings"
        )
        name = run_name(str(Path(report["best"]["run_dir"])))
        commands[f"tianji eval {name}"] = "evaluate the policy of the best trial"
    if report["missing"]:
        commands[report["command"]] = "continue"
    return commands
