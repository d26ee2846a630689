"""Help of the open-ended verbs: every setting with its meaning, default and range, by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tianji.cli.output import Outcome
from tianji.config.overrides import asked_text, find_base, preset_and_assignments
from tianji.config.presets import list_presets
from tianji.config.schema import load_algorithm_config
from tianji.config.settings import (
    ALGORITHM,
    ALGORITHM_NAME,
    Setting,
    list_settings,
    short_names,
    spelled_like,
    value_text,
)

HELP_FLAGS = frozenset({"--help", "-h"})


def asks_for_help(tokens: Sequence[str]) -> bool:
    return bool(HELP_FLAGS.intersection(tokens))


def train_settings_page(tokens: Sequence[str], usage: str, about: str) -> Outcome:
    """The help of a verb that takes every setting of a training run.

    about: may name {presets} and {algorithm}, the one whose settings are shown.
    """
    preset, asked = preset_and_assignments([t for t in tokens if t not in HELP_FLAGS])
    base = find_base(preset, asked)
    algorithm = asked_text(ALGORITHM_NAME, asked) or base.algorithm
    settings = list_settings(load_algorithm_config(algorithm))
    defaults = base.values if algorithm == base.algorithm else {}
    return settings_page(
        usage=usage,
        about=about.format(presets=", ".join(list_presets()), algorithm=algorithm),
        listed=settings,
        all_settings=settings,
        defaults={**defaults, ALGORITHM_NAME: algorithm},
        titles={"": "Run", ALGORITHM: f"Algorithm ({algorithm})"},
    )


def settings_page(
    usage: str,
    about: str,
    listed: Sequence[Setting],
    all_settings: tuple[Setting, ...],
    defaults: Mapping[str, Any],
    titles: Mapping[str, str],
) -> Outcome:
    """One help page.

    listed: what the verb takes, grouped as in the schema; names are the shortest that are unique
    among all settings. defaults: what differs from the schema's own. titles: of groups.
    """
    names = {setting.path: name for name, setting in short_names(all_settings).items()}
    panels: list[RenderableType] = [Text.assemble(("Usage: ", "bold"), usage), "", about, ""]
    rows = []
    for group in dict.fromkeys(setting.group for setting in listed):
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True, style="cyan")
        for setting in (s for s in listed if s.group == group):
            default = defaults.get(setting.path, setting.default)
            option = option_text(names[setting.path], setting)
            table.add_row(Text(option), _meaning(setting, default))
            rows.append(_row(option, setting, default))
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


def _meaning(setting: Setting, default: Any) -> Text:
    facts = f"[default: {value_text(default)}; {setting.allowed}]"
    return Text.assemble(setting.about, " ", (facts, "dim"))


def _row(option: str, setting: Setting, default: Any) -> dict[str, Any]:
    return {
        "option": option,
        "path": setting.path,
        "about": setting.about,
        "default": default,
        "allowed": setting.allowed,
    }
