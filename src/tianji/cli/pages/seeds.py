"""`tianji train ... --seeds N`: the option, and the closing block of such a command."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table

from tianji.cli.output import Outcome, people
from tianji.cli.pages.tables import fact_list, run_name, show_block
from tianji.config.run import RunConfig
from tianji.config.settings import canonical
from tianji.config.values import Assignment
from tianji.display.phrases import ENDINGS, NO_EPISODE
from tianji.errors import UsageError
from tianji.records import Summary
from tianji.seeds.summary import SeedsSummary, Spread
from tianji.wording import counted, to_seconds, to_value

OPTION = "seeds"
MOST_SEEDS = 1000
WIDE = 72
"""A terminal with fewer columns shows a shorter table."""


def take_seeds(asked: Sequence[Assignment]) -> tuple[int | None, list[Assignment]]:
    """Return the number of seeds asked for, None without one, and the other options."""
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


def show_seeds(report: SeedsSummary) -> Outcome:
    """Print the closing block of several seeds and return the outcome."""
    style, exit_code = _ending(report)
    table = _table(report["runs"], is_wide=people().width >= WIDE)
    parts: list[RenderableType] = [table, "", fact_list(_facts(report))]
    num_seeds = len(report["runs"]) + len(report["not_started"])
    title = f"{report['env']}, {report['algorithm']}, {counted(num_seeds, 'seed')}"
    show_block(title, style, parts, _commands(report))
    return Outcome({**report}, exit_code)


def _ending(report: SeedsSummary) -> tuple[str, int]:
    """Return colour and exit code: a failure counts most, then an interruption."""
    because = report["stopped_because"]
    if "failed" in because:
        return "red", 1
    if "interrupted" in because or report["not_started"]:
        return "yellow", 130
    return ("green" if set(because) == {"target_reached"} else "yellow"), 0


def _table(runs: Sequence[Summary], is_wide: bool) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("seed", justify="right", style="cyan", no_wrap=True)
    table.add_column("result", no_wrap=True)
    for name in ("return", "steps", "time to target", "time") if is_wide else ("return",):
        table.add_column(name, justify="right", no_wrap=True)
    for run in runs:
        row = [str(run["seed"]), ENDINGS[run["stopped_because"]].words]
        row.append(to_value(run["mean_return_100"], 4))
        if is_wide:
            row += [f"{run['env_steps']:,}", to_seconds(run["time_to_target_s"])]
            row.append(to_seconds(run["wall_s"]))
        table.add_row(*row)
    return table


def _facts(report: SeedsSummary) -> dict[str, str]:
    facts = {"return": _in_words(report["mean_return_100"], "", digits=4)}
    if report["time_to_target_s"] is not None:
        facts["time to target"] = _in_words(report["time_to_target_s"], " s", digits=3)
    for run in report["runs"]:
        if run["stopped_because"] == "failed":
            facts[f"seed {run['seed']} failed"] = run["first_cause"]
    if left := report["not_started"]:
        facts["not started"] = f"seed {', '.join(map(str, left))}"
    facts["all seeds"] = to_seconds(report["total_s"])
    facts["folder"] = f"{report['run_dir']}/"
    if report["picture"] is not None:
        facts["picture"] = report["picture"]
    return facts


def _in_words(spread: Spread | None, unit: str, digits: int) -> str:
    if spread is None:
        return NO_EPISODE
    values = spread["median"], spread["min"], spread["max"]
    median, low, high = (f"{to_value(value, digits)}{unit}" for value in values)
    return f"median {median}, from {low} to {high} ({counted(spread['count'], 'seed')})"


def _commands(report: SeedsSummary) -> dict[str, str]:
    """Return what to do next with the best seed, and with seeds that did not finish."""
    commands = {}
    saved = [run for run in report["runs"] if run["checkpoint"]]
    rated = [(run["mean_return_100"], run) for run in saved if run["mean_return_100"] is not None]
    if rated:
        _, best = max(rated, key=lambda found: found[0])
        commands[f"tianji eval {run_name(best['run_dir'])}"] = "evaluate the best seed"
    for run in saved:
        if run["stopped_because"] in ("interrupted", "failed"):
            commands[f"tianji resume {run_name(run['run_dir'])}"] = f"continue seed {run['seed']}"
    return commands
