"""What `tianji compare` prints at its end: two tables, what each style costs, and what to keep in
mind about it."""

from __future__ import annotations

from pathlib import Path

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tianji.cli.output import Outcome, people
from tianji.cli.pages.tables import (
    fact_list,
    figures_table,
    run_name,
    sentence_list,
    show_block,
)
from tianji.comparison.report import Comparison, Estimated, StyleFigures, certainty
from tianji.comparison.words import ABOUT_RETURNS, estimate_text
from tianji.wording import counted, to_count, to_percent, to_value

INTERRUPTED = 130
WIDE = 112
"""A terminal with fewer columns shows shorter tables."""


def show_comparison(report: Comparison) -> Outcome:
    """Print the closing block of a comparison and return its outcome."""
    failed = {run["run_dir"]: run["first_cause"] for run in report["runs"] if "first_cause" in run}
    style, exit_code = ("red", 1) if failed else ("yellow", INTERRUPTED)
    if not report["missing"]:
        style, exit_code = "green", 0
    title = f"{report['env']}, {counted(len(report['styles']), 'style')}"
    show_block(title, style, _parts(report, failed), _commands(report))
    return Outcome({**report}, exit_code)


def _parts(report: Comparison, failed: dict[str, str]) -> list[RenderableType]:
    ran = [one for one in report["styles"] if one["seeds"]]
    parts: list[RenderableType] = []
    if ran:
        parts += [learning_table(report, ran), "", machine_table(ran), ""]
    parts += [fact_list({name: " ".join(said) for name, said in report["says"].items()}), ""]
    differences = {one["style"]: "\n".join(one["differences"]) for one in report["styles"]}
    if any(differences.values()):
        parts += [Text("What else differs", style="bold"), fact_list(_present(differences)), ""]
    hidden = () if _has_returns(report, ran) else ABOUT_RETURNS
    parts += [sentence_list([note for note in report["notes"] if note not in hidden]), ""]
    facts = {f"{Path(run).name} failed": cause for run, cause in failed.items()}
    facts["folder"] = f"{report['run_dir']}/"
    if report["picture"] is not None:
        facts["picture"] = report["picture"]
    return [*parts, fact_list(facts)]


def _present(facts: dict[str, str]) -> dict[str, str]:
    return {name: fact for name, fact in facts.items() if fact}


def _has_times(report: Comparison, styles: list[StyleFigures]) -> bool:
    return report["target_return"] is not None and any(one["reached"] for one in styles)


def _has_returns(report: Comparison, styles: list[StyleFigures]) -> bool:
    """Return whether there is room for the returns beside the times."""
    return not _has_times(report, styles) or people().width >= WIDE


def learning_table(report: Comparison, styles: list[StyleFigures]) -> Table:
    """Show what every style reached; intervals are under the values. Final returns of runs that
    stop at a target say little, and are left out where a line has no room for them."""
    has_target = report["target_return"] is not None
    has_times, has_returns = _has_times(report, styles), _has_returns(report, styles)
    columns = ["style"]
    columns += ["reached\ntarget"] if has_target else []
    columns += ["seconds\nto target", "steps\nto target"] if has_times else []
    columns += ["final\nreturn", "greedy\nreturn"] if has_returns else []
    table = figures_table([*columns, f"{report['reference']}\nis better"])
    _name_rows(table)
    for one in styles:
        row: list[str | Text] = [one["style"]]
        if has_target:
            row.append(f"{one['reached']} of {len(one['seeds'])}")
        if has_times:
            row += [_stacked(one["time_to_target_s"], 3), _stacked(one["steps_to_target"], 3)]
        if has_returns:
            row += [_stacked(one["final_return"], 4), _stacked(one["greedy_return"], 4)]
        found = certainty(one)
        table.add_row(*row, "" if found is None else _stacked(found.probability, 2))
    return table


def machine_table(styles: list[StyleFigures]) -> Table:
    """Show what every style made of the machine, means over its runs."""
    columns = ["style", "steps/s", "trained\nsteps/s", "lag\nmean", "lag\np95", "actors\nbusy"]
    has_bound = any(one["share_of_bound"] is not None for one in styles)
    table = figures_table([*columns, "learner\nbusy", *(["share of\nbound"] if has_bound else [])])
    _name_rows(table)
    for one in styles:
        row = [
            one["style"],
            to_count(one["rates_per_s"]["produced"]),
            to_count(one["rates_per_s"]["trained"]),
            to_value(one["lag_versions"]["mean"]),
            to_value(one["lag_versions"]["p95"]),
            to_percent(one["actors"]["busy_share"]),
            to_percent(one["learner"]["busy_share"]),
            to_value(one["share_of_bound"], 2),
        ]
        table.add_row(*row[: len(table.columns)])
    return table


def _name_rows(table: Table) -> None:
    table.columns[0].style, table.columns[0].justify = "cyan", "left"


def _stacked(found: Estimated | None, digits: int) -> Text:
    value, _, interval = estimate_text(found, digits).partition(" ")
    return Text.assemble(value, ("\n" + interval if interval else "", "dim"))


def _commands(report: Comparison) -> dict[str, str]:
    """Return how to continue, or to look at single runs."""
    name = run_name(report["run_dir"])
    if report["missing"]:
        again = report["command"] + ("" if " --run" in report["command"] else f" --run {name}")
        return {again: f"run the missing {counted(len(report['missing']), 'run')}"}
    last = Path(report["runs"][-1]["run_dir"]).name
    return {f"tianji status {name}/{last}": "see where the time of a run went"}
