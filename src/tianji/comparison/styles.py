"""A contest of styles: the same preset and settings, and only the style changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tianji.comparison.contest import Contest, Contestant, refusal
from tianji.config.overrides import STYLE, resolve
from tianji.config.settings import canonical
from tianji.config.values import Assignment
from tianji.errors import UsageError
from tianji.ops.claims import ENOUGH_SEEDS
from tianji.programs.registry import STYLES, find_style
from tianji.wording import listed

NUM_SEEDS = ENOUGH_SEEDS
EXAMPLE = "tianji compare cartpole-ppo --styles tianji,impala,serial"


class StyleContest(NamedTuple):
    """A contest, the name of its folder if one was given, and notes about its settings."""

    contest: Contest
    run: str | None
    notes: tuple[str, ...]


def style_contest(
    preset: str | None,
    names: Sequence[str],
    num_seeds: int,
    asked: Sequence[Assignment],
    command: str,
) -> StyleContest:
    """Return the contest of these styles; UsageError with everything that does not fit together.

    asked: settings of all runs. command: what a person types for it.
    """
    if preset is None:
        raise UsageError(f"Name a preset to compare styles with, such as `{EXAMPLE}`.")
    _check_names(names)
    if num_seeds < 1:
        raise UsageError(f"seeds is {num_seeds}: every style needs one seed or more; 5 are usual.")
    if any(canonical(assignment.written) == STYLE for assignment in asked):
        raise UsageError("--style names the style of one run. --styles names those to compare.")
    contestants, notes = _contestants(preset, names, asked)
    first = contestants[0].config
    seeds = tuple(range(first.seed, first.seed + num_seeds))
    contest = Contest(Path(preset).stem, contestants, seeds, command)
    return StyleContest(contest, first.run, notes)


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        find_style(name)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"--styles names {listed(twice)} more than once: each is compared once.")
    if len(names) < 2:
        given = f"only {names[0]}" if names else "no style"
        raise UsageError(
            f"--styles names {given}, and a comparison needs at least two. The first one is what "
            f"the others are compared with: `{EXAMPLE}`. Known: {', '.join(STYLES)}."
        )


def _contestants(
    preset: str, names: Sequence[str], asked: Sequence[Assignment]
) -> tuple[tuple[Contestant, ...], tuple[str, ...]]:
    """Return the contestants, and notes about how their settings were made."""
    found: list[Contestant] = []
    notes: list[str] = []
    mistakes: dict[str, str] = {}
    for name in names:
        try:
            resolved = resolve(preset, [*asked, Assignment(STYLE, name)])
        except UsageError as error:
            mistakes[name] = str(error)
            continue
        style = find_style(name)
        found.append(Contestant(name, resolved.config, style.about, style.differences))
        notes += resolved.notes
    if mistakes:
        raise refusal(mistakes, len(names))
    return tuple(found), tuple(dict.fromkeys(notes))
