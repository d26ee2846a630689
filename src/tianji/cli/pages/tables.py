"""Tables that several pages consist of: facts, sentences, commands, and a frame around them."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tianji.cli.output import people
from tianji.run_folder.paths import RUNS

FRAME_WIDTH = 8
"""Width of the closing block's frame, with the space between two columns."""


def show_block(
    title: str, style: str, parts: list[RenderableType], commands: Mapping[str, str]
) -> None:
    """Print a framed block, with the commands to try next."""
    if commands:
        parts = [*parts, Text("\nNext things to try", style="bold"), command_list(commands)]
    block = Panel(Group(*parts), title=title, title_align="left", border_style=style, expand=False)
    people().print(block)


def figures_table(columns: Iterable[str]) -> Table:
    """Return an empty table of numbers; its columns are as wide as their widest number."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def fact_list(facts: Mapping[str, str] | Mapping[str, RenderableType]) -> Table:
    """List facts by name. Long words are folded: a path that is cut is of no use."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, fact in facts.items():
        table.add_row(name, Text(fact) if isinstance(fact, str) else fact)
    return table


def sentence_list(sentences: Iterable[str], mark: str = "-") -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    for sentence in sentences:
        table.add_row(mark, Text(sentence))
    return table


def command_list(purposes: Mapping[str, str]) -> Table:
    """List commands with what they are for. Where a line has no room for both, the purpose follows
    in the next one: a command that is cut is of no use."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="cyan", overflow="fold")
    typed = {command.replace("tianji", _typed(), 1): about for command, about in purposes.items()}
    widest = max(map(len, typed)) + max(map(len, typed.values()))
    room = people().width - FRAME_WIDTH
    for command, purpose in typed.items():
        if widest <= room:
            table.add_row(Text(command), purpose)
        else:
            lines = in_lines(command, room)
            table.add_row(Text.assemble(lines, (f"\n  {purpose}", "default")))
    return table


def in_lines(command: str, width: int) -> str:
    """Break a command that is too long before its options, with backslashes: it can be pasted."""
    if len(command) <= width:
        return command
    parts: list[str] = []
    for word in map(shlex.quote, shlex.split(command)):
        if parts and not word.startswith("--"):
            parts[-1] += f" {word}"
        else:
            parts.append(word)
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) + len("  \\") > width:
            lines.append(f"    {part}")
        else:
            lines[-1] += f" {part}"
    return " \\\n".join(lines)


def _typed() -> str:
    """Return what the person has to type where the command is not on the path (`make train`)."""
    if shutil.which("tianji") is not None or not sys.argv[0].endswith("tianji"):
        return "tianji"
    return shlex.quote(os.path.relpath(sys.argv[0]))


def run_name(run_dir: str) -> str:
    """Return what commands find a run by, quoted: its name under runs/, else its path."""
    path = Path(run_dir)
    return shlex.quote(str(path.relative_to(RUNS) if path.is_relative_to(RUNS) else path))
