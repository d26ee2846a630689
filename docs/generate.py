"""What the documentation takes from the sources when it is built, so that it cannot disagree.

A page asks with a comment of its own line:

    <!-- settings: run -->              the settings of a group, as a table
    <!-- settings: algorithm dqn -->    those of an algorithm
    <!-- help: eval -->                 what `tianji eval --help` prints
    <!-- api: train -->                 signature and docstring of a public name

mkdocs calls on_page_markdown() for every page (`hooks` in mkdocs.yml).
"""

from __future__ import annotations

import inspect
import io
import re
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console

MARKER = re.compile(r"^<!-- (settings|help|api)(?:: (.+?))? -->$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    return MARKER.sub(lambda found: MAKERS[found[1]](found[2] or ""), markdown)


def settings_table(group: str) -> str:
    from tianji.cli.pages.settings import option_text
    from tianji.config.schema import load_algorithm_config
    from tianji.config.settings import list_settings, short_names, value_text

    group, _, algorithm = group.partition(" ")
    settings = list_settings(load_algorithm_config(algorithm or "ppo"))
    names = {setting.path: name for name, setting in short_names(settings).items()}
    wanted = "" if group == "run" else group
    rows = [
        (
            f"`{option_text(names[s.path], s)}`",
            f"`{s.path}`",
            s.about,
            f"`{value_text(s.default)}`",
            s.allowed,
        )
        for s in settings
        if s.group == wanted
    ]
    if not rows:
        raise ValueError(f"no settings in group '{group}'")
    return table(("option", "full name", "meaning", "default", "allowed"), rows)


def help_text(verb: str) -> str:
    from tianji.cli.main import run_verb

    page = io.StringIO()
    console = Console(file=page, width=100)
    outcome = run_verb([verb, "--help"], console)
    if outcome.shown is not None:
        console.print(outcome.shown)
    lines = [line.rstrip() for line in page.getvalue().strip().splitlines()]
    return "\n".join(["```text", *lines, "```"])


def api_entry(name: str) -> str:
    import tianji
    from tianji.trained.policy import LoadedPolicy

    owner, _, member = name.partition(".")
    found: Any = LoadedPolicy if owner == "LoadedPolicy" else getattr(tianji, owner)
    found = getattr(found, member) if member else found
    text = inspect.getdoc(found) or ""
    if inspect.isclass(found):
        return f"```text\nclass {name}\n```\n\n{as_text(text)}"
    return f"```text\n{name}{signature(found)}\n```\n\n{as_text(text)}"


def signature(function: Callable[..., Any]) -> str:
    found = inspect.signature(function)
    kept = [p for name, p in found.parameters.items() if name != "self"]
    return str(found.replace(parameters=kept)).replace("'", "")


def as_text(docstring: str) -> str:
    """Docstrings are plain text: keep their lines, and show their examples as code."""
    return "\n".join(["```text", docstring, "```"])


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines
    )


MAKERS: dict[str, Callable[[str], str]] = {
    "settings": settings_table,
    "help": help_text,
    "api": api_entry,
}
