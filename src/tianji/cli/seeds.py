"""`tianji train ... --seeds N`: the option, and the closing block of such a command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tianji.cli.closing import command_list, fact_list, run_name
from tianji.cli.output import Outcome, people
from tianji.config.run import RunConfig
from tianji.config.settings import canonical
from tianji.config.tokens import Assignment
from tianji.errors import UsageError
from tianji.seeds.screen import ENDINGS
from tianji.wording import counted, to_value

OPTION = "seeds"
MOST_SEEDS = 1000
WIDE = 72
"""A terminal with fewer columns shows a shorter table."""


def take_seeds(asked: Sequence[Assignment]) -> tuple[int | None, list[Assignment]]:
    """The number of seeds asked for, None without one, and the other options."""
    found = [a for a in asked if canonical(a.written) == OPTION]
    others = [a for a in asked if canonical(a.written) != OPTION]
    if not found:
        return None, others
    text = "" if found[-1].value is None else str(found[-1].value)
    if not (text.isdecimal() and 1 <= int(text) <= MOST_SEEDS):
        raise UsageError(
            f"--seeds = {text or 'nothing'}: must be a whole number from 1 to {MOST_SEEDS}, the "
            "number of seeds to train with. The seeds count up from --seed."
        )
    return int(text), others


def train_with_seeds(config: RunConfig, num_seeds: int) -> Outcome:
    from tianji.seeds.screen import make_screen
    from tianji.seeds.train import train_seeds

    report = train_seeds(config, num_seeds, make_screen(config.observe.display))
    return show_seeds(report)


def show_seeds(report: Mapping[str, Any]) -> Outcome:
    """Print the closing block of several seeds and give the outcome."""
    style, exit_code = _ending(report)
    table = _table(report["runs"], is_wide=people().width >= WIDE)
    block: list[RenderableType] = [table, "", fact_list(_facts(report))]
    if commands := _commands(report):
        block += [Text("\nNext things to try", style="bold"), command_list(commands)]
    num_seeds = len(report["runs"]) + len(report["not_started"])
    title = f"{report['env']}, {report['algorithm']}, {counted(num_seeds, 'seed')}"
    people().print(
        Panel(Group(*block), title=title, title_align="left", border_style=style, expand=False)
    )
    return Outcome(dict(report), exit_code)


def _ending(report: Mapping[str, Any]) -> tuple[str, int]:
    """Colour and exit code: a failure counts most, then an interruption."""
    because = report["stopped_because"]
    if "failed" in because:
        return "red", 1
    if "interrupted" in because or report["not_started"]:
        return "yellow", 130
    return ("green" if set(because) == {"target_reached"} else "yellow"), 0


def _table(runs: Sequence[Mapping[str, Any]], is_wide: bool) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("seed", justify="right", style="cyan", no_wrap=True)
    table.add_column("result", no_wrap=True)
    for name in ("return", "steps", "time to target", "time") if is_wide else ("return",):
        table.add_column(name, justify="right", no_wrap=True)
    for run in runs:
        row = [str(run["seed"]), ENDINGS[run["stopped_because"]]]
        row.append(to_value(run["mean_return_100"], 4))
        if is_wide:
            row += [f"{run['env_steps']:,}", _seconds(run["time_to_target_s"])]
            row.append(_seconds(run["wall_s"]))
        table.add_row(*row)
    return table


def _facts(report: Mapping[str, Any]) -> dict[str, str]:
    facts = {"return": _in_words(report["mean_return_100"], "", digits=4)}
    if report["time_to_target_s"] is not None:
        facts["time to target"] = _in_words(report["time_to_target_s"], " s", digits=3)
    for run in report["runs"]:
        if run["stopped_because"] == "failed":
            facts[f"seed {run['seed']} failed"] = str(run.get("first_cause"))
    if left := report["not_started"]:
        facts["not started"] = f"seed {', '.join(map(str, left))}"
    facts["all seeds"] = f"{report['total_s']:.1f} s"
    facts["folder"] = f"{report['run_dir']}/"
    if report["picture"] is not None:
        facts["picture"] = report["picture"]
    return facts


def _in_words(spread: Mapping[str, float] | None, unit: str, digits: int) -> str:
    if spread is None:
        return "no episode has finished yet"
    median, low, high = (to_value(spread[key], digits) for key in ("median", "min", "max"))
    seeds = counted(int(spread["count"]), "seed")
    return f"median {median}{unit}, from {low}{unit} to {high}{unit} ({seeds})"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"


def _commands(report: Mapping[str, Any]) -> dict[str, str]:
    """What to do next with the best seed, and with those that stopped before their end."""
    commands = {}
    saved = [run for run in report["runs"] if run.get("checkpoint")]
    rated = [run for run in saved if run["mean_return_100"] is not None]
    if rated:
        best = max(rated, key=lambda run: run["mean_return_100"])
        commands[f"tianji eval {_quoted(best)}"] = "evaluate the best seed"
    for run in saved:
        if run["stopped_because"] in ("interrupted", "failed"):
            commands[f"tianji resume {_quoted(run)}"] = f"continue seed {run['seed']}"
    return commands


def _quoted(run: Mapping[str, Any]) -> str:
    return shlex.quote(run_name(Path(run["run_dir"])))
