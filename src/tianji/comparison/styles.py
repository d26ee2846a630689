"""A contest of styles: the same preset and settings, and only the style changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tianji.comparison.contest import Contest, Contestant, refusal
from tianji.config.overrides import STYLE, resolve
from tianji.config.run import RunConfig
from tianji.config.schema import flat
from tianji.config.settings import canonical, list_settings, value_text
from tianji.config.values import Assignment, Values
from tianji.defaults.names import with_full_ids
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
    asked, new_ids = with_full_ids(asked)
    contestants, notes = _contestants(preset, names, asked)
    first = contestants[0].config
    seeds = tuple(range(first.seed, first.seed + num_seeds))
    contest = Contest(Path(preset).stem, contestants, seeds, command)
    return StyleContest(contest, first.run, (*new_ids, *notes))


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
    others = [_with_settings(one, found[0]) for one in found[1:]]
    return (found[0], *others), tuple(dict.fromkeys(notes))


def _with_settings(one: Contestant, reference: Contestant) -> Contestant:
    """Add the settings that are not those of the reference to what differs. Settings of the
    algorithm that only one of the two has belong to its loss."""
    ours, theirs = _settings(one.config), _settings(reference.config)
    unlike = [
        f"{path} {value_text(ours[path])} ({value_text(theirs[path])})"
        for path in ours
        if path in theirs and ours[path] != theirs[path]
    ]
    if not unlike:
        return one
    told = f"Settings, with those of {reference.name} in brackets: {listed(unlike)}."
    return replace(one, differences=(*one.differences, told))


def _settings(config: RunConfig) -> Values:
    """Return the values of all settings but the style."""
    values = flat(config.model_dump())
    paths = [setting.path for setting in list_settings(type(config.algorithm))]
    return {path: values[path] for path in paths if path != STYLE and path in values}
