"""What the documentation takes from the sources when it is built, so that it cannot disagree.

A page asks with a comment of its own line:

    <!-- settings: run -->              the settings of a group, as a table
    <!-- settings: algorithm dqn -->    those of an algorithm
    <!-- help: eval -->                 what `tianji eval --help` prints
    <!-- api: train -->                 signature and docstring of a public name
    <!-- figure: tianji-4c -->          what the paper reports, what ours shows, where data is from
    <!-- others: training -->           other systems beside ours; also `channels`

mkdocs calls on_page_markdown() for every page (`hooks` in mkdocs.yml).
"""

from __future__ import annotations

import inspect
import io
import re
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console

MARKER = re.compile(r"^<!-- (settings|help|api|figure|others)(?:: (.+?))? -->$", re.MULTILINE)


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


def figure_entry(name: str) -> str:
    """What a figure of the first paper shows beside ours, from the data in the package."""
    from tianji.figures.catalogue import FIGURES, DataFigure

    found = FIGURES[name]
    figure = found if isinstance(found, DataFigure) else found.kept
    data = figure.read()
    comparison = figure.compare(data)
    assert comparison is not None, f"{name} is not of the first paper"
    machine = data["machine"]
    made = f"`{data['command']}` at {data['commit']} on {machine['cpu']}, {machine['cores']} cores"
    day = f", {machine['taken_at'][:10]}" if "taken_at" in machine else ""
    facts = {
        "Paper": comparison.paper,
        "Ours": comparison.ours,
        "Difference": comparison.difference,
        "Data": f"{made}{day}",
    }
    return table(("", f"`tianji figure {name}`"), [(f"**{k}**", v) for k, v in facts.items()])


def others_table(kind: str) -> str:
    return {"training": trained_table, "channels": channels_table}[kind]()


def trained_table() -> str:
    """How fast other systems learnt CartPole, beside one group of ours on such a machine."""
    from tianji.figures.files import read_data
    from tianji.figures.groups.summary import PPO, by_groups, first_combine, timed_of
    from tianji.figures.peers import list_trained
    from tianji.wording import counted

    data = read_data("tianji-groups")
    points = timed_of(data, PPO)
    ours = by_groups(points, first_combine(points), lambda point: point["time_to_target_s"])
    seeds = str(len({point["seed"] for point in points}))
    cores = f"{counted(data['cores_per_group'], 'core')} ({data['machine']['cpu']})"
    settings = f"preset `cartpole-ppo`, one group on {cores}"
    rows = [("**TianJi**", "PPO", settings, seeds, f"{ours[1][1]:.2f} s")]
    rows += [
        (row.system, row.algorithm, row.settings, str(row.runs), row.how_long)
        for row in list_trained()
    ]
    return table(("system", "algorithm", "settings", "runs", "to a mean return of 300"), rows)


def channels_table() -> str:
    """Messages per second of one actor over our stream and over other systems' channels."""
    from statistics import median

    from tianji.figures.files import read_data
    from tianji.figures.peers import channels_beside
    from tianji.figures.transports import NAMES, size_text

    data = read_data("tianji-5a")
    sizes = (4 << 10, 64 << 10, 512 << 10, 2 << 20)
    points = [
        p for p in (*data["points"], *channels_beside(data))
        if p["actors"] == 1 and p["sample_time_s"] == 0 and p["transport"] in NAMES
    ]  # fmt: skip
    rows = []
    for transport, name in NAMES.items():
        cells = [
            median(
                p["messages_per_s"]
                for p in points
                if (p["transport"], p["size_bytes"]) == (transport, size)
            )
            for size in sizes
        ]
        rows.append((name, *(f"{cell:,.0f}" for cell in cells)))
    return table(("messages per second", *map(size_text, sizes)), rows)


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
    "figure": figure_entry,
    "others": others_table,
}
