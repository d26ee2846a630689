"""Settings that were left to the planner: which values are tried, and which are taken.

for values in variants(config):                      # at most MOST_VARIANTS
    trials.append(Trial(values, profile, machine, demand))      # of settle(config, values)
choice = choose(config, trials)
config = settle(config, choice.values)               # nothing is open any more
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tianji.balance.candidates import candidates
from tianji.balance.costs import learner_cost
from tianji.balance.demand import Demand
from tianji.balance.profile import Cost, LearnerCost, Profile
from tianji.config.defaults import How, open_paths
from tianji.config.machine import Machine
from tianji.config.run import RunConfig
from tianji.config.settings import value_at

MOST_VARIANTS = 6
"""Each is a profile of its own."""
NO_SPEED_LOST = 0.05
"""A smaller value is taken when it costs less of the speed than this."""
_FACTORS = (1, 2, 0.5, 4)
"""Times the value that the config has, in the order in which they are left out last."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One variant, measured."""

    values: Mapping[str, int]
    profile: Profile
    machine: Machine
    demand: Demand

    @property
    def rate(self) -> float:
        """Steps trained on for the first time, per second, of the best plan."""
        return candidates(self.profile, self.machine, self.demand)[0].prediction.received


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen, with a profile that fits it."""

    values: Mapping[str, int]
    profile: Profile
    notes: tuple[str, ...]


def open_settings(config: RunConfig) -> dict[str, tuple[int, ...]]:
    """By path, the values that come into question, smallest first; one where time is filled."""
    found: dict[str, tuple[int, ...]] = {}
    for path, how in _open(config).items():
        factors = _FACTORS if how == "tried" else (1,)
        found[path] = tuple(sorted({_times(config, path, factor) for factor in factors}))
    return found


def variants(config: RunConfig) -> list[dict[str, int]]:
    """What to measure: every combination, or, where those are too many, one change at a time. The
    values that the config has come first."""
    tried = {path: _value(config, path) for path in open_settings(config)}
    several = {path: values for path, values in open_settings(config).items() if len(values) > 1}
    combined = [
        {**tried, **dict(zip(several, values, strict=True))}
        for values in itertools.product(*several.values())
    ]
    if len(combined) > MOST_VARIANTS:
        per_setting = (MOST_VARIANTS - 1) // len(several)
        combined = [
            {**tried, path: _times(config, path, factor)}
            for path in several
            for factor in _FACTORS[1 : 1 + per_setting]
        ]
    return [tried, *(values for values in combined if values != tried)]


def settle(config: RunConfig, values: Mapping[str, int]) -> RunConfig:
    """The config with these values, by path; nothing is open in it."""
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
    """The smallest values whose speed is the best one's; then as many updates as fit."""
    assert trials
    rates = [trial.rate for trial in trials]
    best = max(rates)
    good = [t for t, rate in zip(trials, rates, strict=True) if rate >= best * (1 - NO_SPEED_LOST)]
    chosen = min(good, key=lambda trial: math.prod(trial.values.values()))
    rate = rates[trials.index(chosen)]
    values, profile = dict(chosen.values), chosen.profile
    notes = [
        f"{path} = {values[path]}: {rate:,.0f} of the {best:,.0f} steps/s that the fastest of "
        f"{len(trials)} measured variants reaches."
        for path, how in _open(config).items()
        if how == "tried"
    ]
    for path, how in _open(config).items():
        if how == "filled":
            values[path], profile = _fill(replace(chosen, profile=profile), values[path])
            notes.append(f"{path} = {values[path]}: as many as the learner has time for.")
    return Choice(values, profile, tuple(notes))


def _fill(trial: Trial, num_updates: int) -> tuple[int, Profile]:
    """Plan as if a version had one update; then give the learner's idle time to updates."""
    one = with_updates(trial.profile, num_updates, 1)
    planned = candidates(one, trial.machine, trial.demand)[0]
    learner = learner_cost(one, planned.learner_threads)
    idle_s = max(planned.period.terms["sampling"] - learner.version.loaded_s, 0.0)
    enough = 1 + int(idle_s / learner.update_s) if learner.update_s > 0 else num_updates
    return enough, with_updates(trial.profile, num_updates, enough)


def with_updates(profile: Profile, before: int, after: int) -> Profile:
    """The costs of a version with another number of updates. What was tried was tried without."""
    if before == after:
        return profile
    learners = tuple(_more_updates(cost, after - before) for cost in profile.learners)
    return profile.model_copy(update={"learners": learners, "rehearsals": ()})


def _more_updates(cost: LearnerCost, more: int) -> LearnerCost:
    version = cost.version
    growth = max(version.alone_s + more * cost.update_s, cost.update_s) / version.alone_s
    grown = Cost(
        alone_s=version.alone_s * growth,
        loaded_s=version.loaded_s * growth,
        cpu_s=version.cpu_s * growth,
        noise=version.noise,
    )
    return cost.model_copy(update={"version": grown})


def _open(config: RunConfig) -> dict[str, How]:
    every = open_paths(type(config), type(config.algorithm))
    return {path: every[path] for path in config.plan.choose}


def _times(config: RunConfig, path: str, factor: float) -> int:
    """The config's value times this, as a number that the actors can share where it has to be."""
    unit = config.num_actors if path == "num_envs" and config.num_actors != "auto" else 1
    return max(1, int(_value(config, path) * factor / unit)) * unit


def _value(config: RunConfig, path: str) -> int:
    found = value_at(config, path)
    assert isinstance(found, int)
    return found
