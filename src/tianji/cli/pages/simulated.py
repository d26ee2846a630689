"""What `tianji simulate` prints: rates by size, or the rounds of gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from tianji.wording import counted, to_count, to_percent, to_value

if TYPE_CHECKING:
    from tianji.algorithms.interface import Gather
    from tianji.balance.given_times import Times
    from tianji.virtual.rounds import Gathered
    from tianji.virtual.simulate import Simulated
    from tianji.virtual.sizes import Size

RATES = ("produced", "received", "trained")
BUSY = ("actors\nbusy", "learner\nbusy")
MOST_ROWS = 20
"""Actors in the table; of more, the first and the last ones."""
WORDS = {
    "first": "a round closes with the first {m} gradients of its version",
    "harmonic": "a round closes when the harmonic count of all actors reaches {m} / {n}",
    "barrier": "a round closes with one gradient from every actor",
    "every": "each gradient makes a version (AFedPG in our reconstruction)",
}


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def rates_table(sizes: Sequence[Size], found: Sequence[Simulated]) -> Table:
    rates = (f"{name}\nsteps/s" for name in RATES)
    table = _table("nodes", "actors", *rates, "lag", *BUSY)
    table.add_column("limit", no_wrap=True)
    for size, simulated in zip(sizes, found, strict=True):
        table.add_row(
            str(size.num_nodes),
            str(size.num_actors),
            *(to_count(getattr(simulated, name)) for name in RATES),
            f"{simulated.lag_versions:.2f}",
            to_percent(simulated.busy_share["actors"]),
            to_percent(simulated.busy_share["learner"]),
            simulated.bottleneck,
        )
    return table


def rule_text(algorithm: str, gather: Gather, num_actors: int) -> str:
    """Say when a round closes."""
    words = WORDS[gather.rule].format(m=gather.num_gradients, n=num_actors)
    first = gather.first_num_gradients
    differs = gather.rule in ("first", "harmonic") and first != gather.num_gradients
    return f"{algorithm}: {words}{f' (of the first: {first})' if differs else ''}."


def gradients_table(found: Gathered, times: Times, num_steps: int) -> Table:
    """Show every actor's times, and its share of the gradients."""
    table = _table("actor", "gradient\ns", "message\ns", "gradients\nused", "share")
    for actor in _shown(len(found.counts)):
        if actor is None:
            table.add_row("...")
            continue
        table.add_row(
            str(actor),
            to_value(times.usual_s(actor, num_steps)),
            to_value(times.communicate_s(actor)),
            str(found.counts[actor]),
            to_percent(found.counts[actor] / found.gradients),
        )
    return table


def _shown(num_actors: int) -> list[int | None]:
    if num_actors <= MOST_ROWS:
        return list(range(num_actors))
    half = MOST_ROWS // 2
    return [*range(half), None, *range(num_actors - half, num_actors)]


def rounds_text(found: Gathered) -> str:
    share = to_percent(found.discarded / (found.gradients + found.discarded))
    return (
        f"{counted(found.rounds, 'round')} in {to_value(found.finish_s, 4)} s: "
        f"{to_value(found.rounds_per_s)} rounds/s, {to_value(found.gradients_per_s)} gradients/s; "
        f"{found.discarded} unfinished gradients were discarded ({share} of all)."
    )
