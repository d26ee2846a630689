"""The page of `tianji zoo`: what every preset has reached."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tianji.cli.pages.tables import figures_table
from tianji.zoo.evidence import Row, Zoo, baseline, count_verdicts, estimate_text, return_text

WIDTH = 108
"""What the table needs; a narrow terminal breaks its lines, which beats cutting its numbers."""
COLUMNS = ("steps", "baseline", "mean", "IQM (95 %)", "SB3", "seeds", "verdict", "time")


def zoo_page(zoo: Zoo) -> RenderableType:
    """Return the table with what its columns mean."""
    table = figures_table(("preset", *COLUMNS))
    table.columns[0].justify = "left"
    for row in zoo["rows"]:
        _add(table, row)
    about = (
        f"\nReturns are means of {zoo['episodes']} greedy episodes at the end of training. "
        "baseline: random actions, or doing nothing where that is better. mean and IQM, the "
        "interquartile mean, are those over seeds. SB3 is the mean of Stable-Baselines3 with RL "
        "Zoo's settings and as many steps; seeds are ours and those of SB3. Passed: our mean is "
        "below that of SB3 by at most 5 % of what SB3 gains over random actions. Kept up: the "
        "same, but neither policy is better than the baseline, so that the row says little. "
        f"{count_verdicts(zoo['rows'])} time: our seconds over those of SB3 for 20,000 steps, "
        "measured in turn, without the start of either."
    )
    return Group(table, Text(about))


def _add(table: Table, row: Row) -> None:
    time = row["wall_time"]
    ratio = "" if time is None else f"{time['tianji_s'] / time['sb3_s']:.2f}"
    ours, theirs = row["tianji"], row["sb3"]
    table.add_row(
        row["preset"],
        f"{row['env_steps']:,}",
        return_text(baseline(row)),
        return_text(ours["mean"]),
        estimate_text(ours),
        "" if theirs is None else return_text(theirs["mean"]),
        f"{ours['seeds']}" if theirs is None else f"{ours['seeds']}, {theirs['seeds']}",
        row["verdict"] or "",
        ratio,
    )
