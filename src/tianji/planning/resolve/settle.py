"""Choose values for settings that are left to the planner (`auto`).

for values in variants(config):                                 # at most MOST_VARIANTS
    trials.append(Trial(values, profile, machine, demand))      # of settle(config, values)
choice = choose(config, trials)
config = settle(config, choice.values)                          # no setting is `auto` any more
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tianji.config.machine import Machine
from tianji.config.run import RunConfig
from tianji.config.schema import How, open_paths
from tianji.config.settings import value_at
from tianji.costs.profile import LearnerCost, Profile
from tianji.costs.work import learner_cost
from tianji.planning.solve.candidates import Candidate, candidates
from tianji.planning.solve.demand import Demand

MOST_VARIANTS = 6  # each needs a profile of its own
NO_SPEED_LOST = 0.05  # a smaller value is taken if it costs less of the speed than this
# Times the value that the config has; the first ones are dropped last.
_FACTORS = (1, 2, 0.5, 4)


@dataclass(frozen=True, slots=True)
class Trial:
    """One variant and its profile."""

    values: Mapping[str, int]
    profile: Profile
    machine: Machine
    demand: Demand

    def best(self, profile: Profile) -> Candidate:
        return candidates(profile, self.machine, self.demand)[0]


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen values, with a profile that fits them."""

    values: Mapping[str, int]
    profile: Profile
    notes: tuple[str, ...]


def open_settings(config: RunConfig) -> dict[str, tuple[int, ...]]:
    """Return the values to try, smallest first, by path; one value if time is filled instead."""
    found: dict[str, tuple[int, ...]] = {}
    for path, how in _open(config).items():
        factors = _FACTORS if how == "tried" else (1,)
        found[path] = tuple(sorted({_times(config, path, factor) for factor in factors}))
    return found


def variants(config: RunConfig) -> list[dict[str, int]]:
    """Return what to measure, the config's own values first.

    Every combination, or one change at a time if there are too many.
    """
    options = open_settings(config)
    own = {path: _value(config, path) for path in options}
    several = {path: values for path, values in options.items() if len(values) > 1}
    combined = [
        {**own, **dict(zip(several, values, strict=True))}
        for values in itertools.product(*several.values())
    ]
    if len(combined) > MOST_VARIANTS:
        per_setting = (MOST_VARIANTS - 1) // len(several)
        combined = [
            {**own, path: _times(config, path, factor)}
            for path in several
            for factor in _FACTORS[1 : 1 + per_setting]
        ]
    return [own, *(values for values in combined if values != own)]


def settle(config: RunConfig, values: Mapping[str, int]) -> RunConfig:
    """Return the config with these values, by path; no setting is `auto` in it."""
    data: dict[str, Any] = config.model_dump()
    for path, value in values.items():
        *groups, last = path.split(".")
        record = data
        for group in groups:
            record = record[group]
        record[last] = value
    data["plan"] = {**data["plan"], "choose": ()}
    return RunConfig.model_validate(data)


def choose(config: RunConfig, trials: Sequence[Trial]) -> Choice:
    """Take the smallest values at full speed; then as many updates as the learner has time for."""
    rated = [(trial, trial.best(trial.profile).prediction.received) for trial in trials]
    best = max(rate for _, rate in rated)
    good = [(trial, rate) for trial, rate in rated if rate >= best * (1 - NO_SPEED_LOST)]
    chosen, rate = min(good, key=lambda pair: math.prod(pair[0].values.values()))
    values, profile, notes = dict(chosen.values), chosen.profile, []
    for path, how in sorted(_open(config).items(), key=lambda item: item[1] == "filled"):
        if how == "filled":
            values[path], profile = _fill(chosen, profile, values[path])
            notes.append(f"{path} = {values[path]}: as many as the learner has time for.")
        else:
            notes.append(
                f"{path} = {values[path]}: {rate:,.0f} of the {best:,.0f} steps/s that the fastest "
                f"of {len(trials)} measured variants reaches."
            )
    return Choice(values, profile, tuple(notes))


def _fill(trial: Trial, profile: Profile, num_updates: int) -> tuple[int, Profile]:
    """Plan with one update per version, then fill the learner's idle time with updates."""
    one = with_updates(profile, num_updates, 1)
    planned = trial.best(one)
    learner = learner_cost(one, planned.learner_threads)
    idle_s = max(planned.period.terms["sampling"] - learner.version.loaded_s, 0.0)
    enough = 1 + int(idle_s / learner.update_s) if learner.update_s > 0 else num_updates
    return enough, with_updates(profile, num_updates, enough)


def with_updates(profile: Profile, before: int, after: int) -> Profile:
    """Return the costs with another number of updates per version, without the rehearsals."""
    if before == after:
        return profile
    learners = tuple(_more_updates(cost, after - before) for cost in profile.learners)
    return profile.model_copy(update={"learners": learners, "rehearsals": ()})


def _more_updates(cost: LearnerCost, more: int) -> LearnerCost:
    alone_s = cost.version.alone_s
    growth = max(alone_s + more * cost.update_s, cost.update_s) / alone_s
    return cost.model_copy(update={"version": cost.version.times(growth, growth)})


def _open(config: RunConfig) -> dict[str, How]:
    every = open_paths(type(config), type(config.algorithm))
    return {path: every[path] for path in config.plan.choose}


def _times(config: RunConfig, path: str, factor: float) -> int:
    """Return the config's value times this; num_envs stays a multiple of num_actors."""
    unit = config.num_actors if path == "num_envs" and config.num_actors != "auto" else 1
    return max(1, int(_value(config, path) * factor / unit)) * unit


def _value(config: RunConfig, path: str) -> int:
    found = value_at(config, path)
    assert isinstance(found, int)
    return found
