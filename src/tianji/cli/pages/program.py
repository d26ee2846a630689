"""A program as people read it: the roles of one group, their workers, and the wires."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tianji.cli.pages.tables import fact_list, sentence_list
from tianji.config.overrides import make_config
from tianji.config.run import RunConfig
from tianji.errors import UsageError
from tianji.programs.program import Program, Wire, Worker
from tianji.programs.style import Style

EXAMPLES = ("cartpole-ppo", "cartpole-dqn", "catch-frames-ppo")
"""Presets that show a style: one with unrolls that are used once, one with a replay store, and one
with stacks of frames."""
OTHERS = (
    "Every learner has workers and wires like these. 1/learner is learner 1; names without a "
    "number in front belong to learner 0."
)
TITLES = {"style": "Styles", "ablation": "Ablations: the style tianji with one mechanism replaced"}
"""The heading above the styles of each kind."""
SHOWN = 3
"""Numbered names that are written out."""


def example_preset(style: str) -> str:
    """Return the first example that the style does not refuse."""
    *others, last = EXAMPLES
    for preset in others:
        try:
            make_config(preset, style=style)
        except UsageError:
            continue
        return preset
    return last


def styles_page(styles: Iterable[Style]) -> RenderableType:
    """Return the list of styles, those of a kind below each other."""
    sentences: dict[str, dict[str, str]] = {kind: {} for kind in TITLES}
    for style in styles:
        sentences[style.kind][style.name] = style.about
    parts: list[RenderableType] = []
    for kind, title in TITLES.items():
        parts += [Text(title, style="bold"), fact_list(sentences[kind]), Text()]
    return Group(*parts[:-1])


def program_page(style: Style, preset: str, program: Program, config: RunConfig) -> RenderableType:
    """Return the page of a style's program, which is that of the first learner of the run."""
    has_more = config.num_learners > 1
    which = f": group 0 of {config.num_groups}, learner 0 of {config.num_learners}"
    workers = _table(
        ("worker", "threads", "cores", "roles"),
        (_worker_row(program, worker) for worker in program.workers),
    )
    wires = _table(
        ("wire", "channel", "from", "to", "carries", "capacity"), map(_wire_row, program.wires)
    )
    parts: list[RenderableType] = [
        Text(f"{style.name}: {style.about}"),
        Text(f"\nWorkers of {preset} on this machine{which * has_more}", style="bold"),
        workers,
        Text("\nWires", style="bold"),
        wires,
    ]
    if has_more:
        parts.append(Text(f"\n{OTHERS}"))
    if style.differences:
        parts += [Text("\nDifferences from tianji", style="bold"), sentence_list(style.differences)]
    return Group(*parts)


def _table(columns: Sequence[str], rows: Iterable[tuple[str, ...]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _worker_row(program: Program, worker: Worker) -> tuple[str, ...]:
    roles = program.roles_in(worker.name)
    threads = sorted({role.thread for role in roles})
    in_turn = (shorten([r.name for r in roles if r.thread == thread]) for thread in threads)
    cores = ", ".join(map(str, worker.cores)) or "any"
    return worker.name, str(worker.threads), cores, "; second thread: ".join(in_turn)


def _wire_row(wire: Wire) -> tuple[str, ...]:
    ends = shorten(wire.sources), shorten(wire.targets)
    return wire.name, wire.channel, *ends, wire.carries, str(wire.capacity)


def shorten(names: Sequence[str]) -> str:
    """Return names in a row, with only the first and the last of those that are numbered.

    >>> shorten(["actor-0", "actor-1", "actor-2", "buffer"])
    'actor-0 ... actor-2, buffer'
    """
    rows: list[list[str]] = []
    for name in names:
        stem = name.rpartition("-")[0]
        if rows and stem and rows[-1][0].rpartition("-")[0] == stem:
            rows[-1].append(name)
        else:
            rows.append([name])
    return ", ".join(_ends(row) for row in rows)


def _ends(row: Sequence[str]) -> str:
    return ", ".join(row) if len(row) < SHOWN else f"{row[0]} ... {row[-1]}"
