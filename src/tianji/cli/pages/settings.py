"""Help of the verbs that take any setting: each with its meaning, the value that this command would
use, and what is allowed, by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tianji.cli.output import Outcome
from tianji.config.files import list_presets
from tianji.config.run import RunConfig
from tianji.config.schema import ALGORITHM
from tianji.config.settings import (
    Setting,
    list_settings,
    short_names,
    spelled_like,
    value_at,
    value_text,
)

HELP_FLAGS = frozenset({"--help", "-h"})


def asks_for_help(tokens: Sequence[str]) -> bool:
    return bool(HELP_FLAGS.intersection(tokens))


def without_help(tokens: Sequence[str]) -> list[str]:
    return [token for token in tokens if token not in HELP_FLAGS]


def train_settings_page(config: RunConfig, usage: str, about: str) -> Outcome:
    """The help of a verb that takes every setting of a training run.

    config: of the run that the command would make without --help; its values are shown.
    about: may name {presets} and {algorithm}, the one whose settings are shown.
    """
    algorithm = config.algorithm.name
    settings = list_settings(type(config.algorithm))
    return settings_page(
        usage=usage,
        about=about.format(presets=", ".join(list_presets()), algorithm=algorithm),
        listed=settings,
        all_settings=settings,
        values={setting.path: value_at(config, setting.path) for setting in settings},
        titles={"": "Run", ALGORITHM: f"Algorithm ({algorithm})"},
    )


def settings_page(
    usage: str,
    about: str,
    listed: Sequence[Setting],
    all_settings: tuple[Setting, ...],
    values: Mapping[str, Any],
    titles: Mapping[str, str],
) -> Outcome:
    """One help page.

    listed: what the verb takes, grouped as in the schema; names are the shortest that are unique
    among all settings. values: what this command would use, by path; where one is missing, the
    default is shown. titles: of groups.
    """
    names = {setting.path: name for name, setting in short_names(all_settings).items()}
    panels: list[RenderableType] = [Text.assemble(("Usage: ", "bold"), usage), "", about, ""]
    rows = []
    for group in dict.fromkeys(setting.group for setting in listed):
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True, style="cyan")
        for setting in (s for s in listed if s.group == group):
            option, known = option_text(names[setting.path], setting), setting.path in values
            row = {"option": option, **asdict(setting)}
            row["value"] = value = values[setting.path] if known else setting.default
            rows.append({key: v for key, v in row.items() if key != "kinds"})
            facts = f"{'value' if known else 'default'}: {value_text(value)}; {setting.allowed}"
            table.add_row(Text(option), Text.assemble(setting.about, " ", (f"[{facts}]", "dim")))
        title = titles.get(group, group.capitalize())
        panels.append(Panel(table, title=title, title_align="left", box=box.ROUNDED))
    report = {"usage": usage, "help": about, "settings": rows}
    return Outcome(report, shown=Group(*panels))


def option_text(name: str, setting: Setting) -> str:
    """`--gamma`, `--[no-]tensorboard`, `--env-kwargs.KEY`."""
    option = spelled_like(name, "--")
    if "object" in setting.kinds:
        return f"{option}.KEY"
    return option.replace("--", "--[no-]", 1) if "boolean" in setting.kinds else option
