"""Profiles of the runs that a config may become: kept from an earlier time, or measured now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from tianji.config.machine import Machine
from tianji.config.run import RunConfig
from tianji.costs.profile import Profile
from tianji.envs.build import EnvSources, Probe
from tianji.errors import UsageError
from tianji.planning.keep import key_of, save
from tianji.planning.kept import kept_profile
from tianji.planning.resolve.resolve import demand_of, resolve
from tianji.planning.resolve.settle import Trial, settle, variants

Tell: TypeAlias = Callable[[str], None]
"""Where sentences for people go while something takes its time."""

ONE_OF_SEVERAL_S = 20.0
"""Where several variants are measured, each gets this long."""


def trials(
    config: RunConfig,
    env: EnvSources,
    machine: Machine,
    found: Probe,
    tell: Tell,
    fresh: bool = False,
) -> list[Trial]:
    """A profile of every way to settle what is open in the config; of the config itself where
    nothing is. A way that cannot run is passed over."""
    made: list[Trial] = []
    first, *others = variants(config)
    for values in (first, *others):
        settled = settle(config, values)
        try:
            resolve(settled, machine, found)
        except UsageError:
            if values is first:
                raise
            continue
        if values:
            tell(f"With {', '.join(f'{path} = {value}' for path, value in values.items())}.")
        profile = None if fresh else kept_profile(settled, env, machine)
        if profile is None:
            profile = _measured(settled, env, machine, found, tell, values, is_one=not others)
        made.append(Trial(values, profile, machine, demand_of(settled, found)))
    return made


def _measured(
    config: RunConfig,
    env: EnvSources,
    machine: Machine,
    found: Probe,
    tell: Tell,
    values: Mapping[str, int],
    is_one: bool,
) -> Profile:
    from tianji.planning.measure.measure import LIMIT_S, measure

    limit_s = LIMIT_S if is_one else ONE_OF_SEVERAL_S
    profile = measure(config, env, machine, found, tell, dict(values), limit_s)
    is_whole = config.engine != "local" or bool(profile.rehearsals)
    if env == config.env and is_whole:  # a function in hand has no name to keep it under
        save(key_of(config, machine), profile)
    return profile
