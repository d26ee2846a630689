"""`tianji sweep PRESET --trials N [--search key=low:high ...] [--jobs J] [--key value ...]`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from tianji.cli.output import Outcome, people
from tianji.cli.pages.options import take
from tianji.cli.pages.settings import asks_for_help, train_settings_page, without_help
from tianji.config.overrides import preset_and_assignments, resolve
from tianji.config.schema import Count, Strict
from tianji.config.settings import canonical
from tianji.config.values import Assignment
from tianji.errors import UsageError

USAGE = "tianji sweep PRESET --trials N [--search key=low:high ...] [--jobs J] [--key value ...]"
ABOUT = """\
Search for good settings. Every trial is a run with other values of the searched settings; Optuna \
proposes them (TPE), and ends trials early that are worse than the median of the others.

--trials N: trials in all, those of earlier sessions included; default 20.
--search key=low:high, key=low:high:log, or key=a,b,c: a setting to search, by the names below; \
write it once for each. Choices that have commas themselves: key=64,64/256,256. Without --search, \
the learning rate (from a tenth to ten times the preset's), gamma, and entropy or target_tau are \
searched, those of them that the algorithm has.
--jobs J: trials at the same time, at most. Each gets cores of its own; default: as many as the \
cores allow.
--objective return: the highest mean return of the last 100 episodes at the end; time: the \
shortest time to the target. Default: time if the runs have a target, else return.
--prune false: let every trial run to its end.

Ctrl-C stops and shows what is there; the same command continues. The folder gets sweep.json, \
sweep.png, and best.yaml, which `tianji train` takes. --run NAME names it.

All settings of `tianji train` work here, for all trials alike. Presets: {presets}.

These are the settings of {algorithm}."""
SEARCH = "search"


class SweepOptions(Strict):
    """How a sweep goes."""

    trials: Count = 20
    """Trials in all."""
    jobs: int | None = Field(None, ge=1)
    """Trials at the same time, at most."""
    objective: Literal["auto", "return", "time"] = "auto"
    """What makes a trial better than another."""
    prune: bool = True
    """End trials early that are worse than the median of the others."""


def take_searches(asked: Sequence[Assignment]) -> tuple[list[str], list[Assignment]]:
    """Return what is searched, and the other options."""
    found = [one for one in asked if canonical(one.written) == SEARCH]
    if any(one.value is None for one in found):
        raise UsageError("'--search' needs a value, such as learning_rate=1e-4:1e-2:log.")
    others = [one for one in asked if canonical(one.written) != SEARCH]
    return [str(one.value) for one in found], others


def sweep(*tokens: str) -> Outcome:
    """Search for good settings."""
    preset, assignments = preset_and_assignments(without_help(tokens))
    searched, rest = take_searches(assignments)
    options, asked = take(SweepOptions, rest, "tianji sweep")
    if asks_for_help(tokens):
        return train_settings_page(resolve(preset, asked).config, USAGE, ABOUT)
    from tianji.cli.pages.sweep import show_sweep
    from tianji.seeds.screen import make_screen
    from tianji.sweep.request import make_request
    from tianji.sweep.sweep import run_sweep

    request = make_request(
        preset,
        searched,
        asked,
        options.trials,
        options.jobs,
        options.objective,
        options.prune,
        shlex.join(("tianji", "sweep", *tokens)),
    )
    for note in (*request.notes, *request.base.reasons):
        people().print(f"Note: {note}", markup=False)
    return show_sweep(run_sweep(request, make_screen(request.config.observe.display)))
