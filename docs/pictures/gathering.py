"""Draws gathering.png: the same four unequal actors under each gather rule.

    python docs/pictures/gathering.py

The rounds are those of virtual/rounds.py, which uses the rules of real runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from tianji.algorithms.interface import Gather
from tianji.balance.given_times import Times
from tianji.config.run import TimesConfig
from tianji.figures.style import BLACK, BLUE, ORANGE, QUIET, RED, new_figure, save
from tianji.virtual.rounds import Round, simulate_rounds, total
from tianji.wording import counted

OUTPUT = Path(__file__).with_suffix(".png")
COMPUTE_S = (1.0, 2.0, 3.0, 8.0)
M = 8
SHOWN_S = 16.0
COUNTED_ROUNDS = 1200
WHOLE = (len(COMPUTE_S) - 0.5, -0.5)
"""From the lower edge of a panel to the upper one."""
RULES = {
    "first": ("Rennala", f"the first {M} gradients close the round"),
    "harmonic": ("Malenia", f"everybody, and a variance as of {M} gradients"),
    "barrier": ("Synchronous", "one gradient of everybody"),
    "every": ("AFedPG, our reconstruction", "every gradient makes a version"),
}


class Bar(NamedTuple):
    """A gradient of an actor, from its beginning to its arrival or its end."""

    actor: int
    start_s: float
    end_s: float
    lag: int
    """In versions, of one that was used."""
    is_used: bool


def rounds_of(rule: Any, num_rounds: int) -> list[Round]:
    gather = Gather(rule=rule, num_gradients=M, first_num_gradients=M)
    times = Times(TimesConfig(law="given", compute=COMPUTE_S), len(COMPUTE_S), 0, seed=1)
    return list(simulate_rounds(gather, times, len(COMPUTE_S), 1, num_rounds))


def gathered_bars(rounds: list[Round], one_each: bool) -> Iterator[Bar]:
    """Whoever is not done when the round is closed has worked for nothing."""
    start_s = 0.0
    for done in rounds:
        for actor, compute_s in enumerate(COMPUTE_S):
            count = done.counts.get(actor, 0)
            for index in range(count):
                began_s = start_s + index * compute_s
                yield Bar(actor, began_s, began_s + compute_s, 0, True)
            began_s = start_s + count * compute_s
            if began_s < done.closed_s and not (one_each and count):
                yield Bar(actor, began_s, done.closed_s, 0, False)
        start_s = done.finish_s


def arriving_bars(rounds: list[Round]) -> Iterator[Bar]:
    """Nobody is stopped; what is made from an old version comes late."""
    began = dict.fromkeys(range(len(COMPUTE_S)), (0.0, 0))
    for done in rounds:
        (actor,) = done.counts
        start_s, version = began[actor]
        yield Bar(actor, start_s, done.closed_s, done.version - version, True)
        began[actor] = (done.closed_s, done.version + 1)


def draw_bars(axes: Any, bars: Iterator[Bar], shows_lag: bool) -> None:
    for bar in bars:
        length_s = min(bar.end_s, SHOWN_S) - bar.start_s
        if length_s <= 0:
            continue
        look = (
            {"facecolor": ORANGE if shows_lag and bar.lag else BLUE, "edgecolor": "white"}
            if bar.is_used
            else {"facecolor": "white", "edgecolor": RED, "hatch": "//////"}
        )
        axes.barh(bar.actor, length_s, left=bar.start_s, height=0.72, linewidth=0.9, **look)
        if shows_lag and bar.end_s <= SHOWN_S:
            middle_s = bar.start_s + length_s / 2
            colour = BLACK if bar.lag else "white"
            axes.text(middle_s, bar.actor, bar.lag, ha="center", va="center", size=8, color=colour)


def account(rule: str) -> str:
    """Rates over a long time, not only of what is shown."""
    found = total(rounds_of(rule, COUNTED_ROUNDS), len(COMPUTE_S))
    dropped = found.discarded / (found.discarded + found.gradients)
    return (
        f"{found.rounds_per_s * 100:.3g} versions in 100 s\n"
        f"of {counted(round(found.gradients / found.rounds), 'gradient')} each\n"
        f"{found.gradients_per_s * 100:.3g} gradients in 100 s\n"
        f"{100 * dropped:.0f} % of all begun are dropped"
    )


def draw_rule(axes: Any, rule: str) -> None:
    rounds = rounds_of(rule, 60)
    every = rule == "every"
    bars = arriving_bars(rounds) if every else gathered_bars(rounds, one_each=rule == "barrier")
    draw_bars(axes, bars, shows_lag=every)
    for done in takewhile(lambda done: done.closed_s <= SHOWN_S, rounds):
        from_y, to_y = (min(done.counts) + edge for edge in (-0.4, 0.4)) if every else WHOLE
        axes.vlines(done.closed_s, from_y, to_y, color=BLACK, linewidth=2.2, zorder=3)
    name, words = RULES[rule]
    axes.set_title(f"{name}: {words}", loc="left", size=10.5, color=BLACK)
    axes.set_yticks(range(len(COMPUTE_S)), [f"{h:g} s" for h in COMPUTE_S])
    axes.text(SHOWN_S + 0.35, 1.5, account(rule), size=9, color=BLACK, va="center", linespacing=1.5)
    axes.set_xlim(0, SHOWN_S + 0.05)
    axes.set_ylim(*WHOLE)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(QUIET)
    axes.tick_params(colors=QUIET, labelcolor=BLACK, labelsize=9, length=0)


def draw() -> Any:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    figure = new_figure(9.6, 8.6, "")
    every_axes = figure.subplots(len(RULES), 1, sharex=True)
    for axes, rule in zip(every_axes, RULES, strict=True):
        draw_rule(axes, rule)
    every_axes[-1].set_xlabel("seconds", size=9)
    figure.supylabel("actors, by the time they take for a gradient", size=9)
    legend = [
        Patch(facecolor=BLUE, label="gradient that counts"),
        Patch(facecolor=ORANGE, label="counts late, by so many versions"),
        Patch(facecolor="white", edgecolor=RED, hatch="//////", label="dropped work"),
        Patch(facecolor="white", edgecolor=QUIET, label="idle"),
        Line2D([], [], color=BLACK, linewidth=2.2, label="a new version"),
    ]
    figure.legend(handles=legend, loc="outside upper center", ncols=5, frameon=False, fontsize=9)
    return figure


if __name__ == "__main__":
    save(draw(), OUTPUT)
