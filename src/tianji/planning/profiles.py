"""Profiles of the runs that a config may become: kept from an earlier run, or measured now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from tianji.config.machine import Machine, read_machine
from tianji.config.run import RunConfig
from tianji.costs.profile import Profile
from tianji.engines.spec import RunSpec
from tianji.envs.build import EnvSources, Probe
from tianji.errors import UsageError
from tianji.planning.keep import kept_profile, key_of, save
from tianji.planning.resolve.resolve import demand_of, resolve
from tianji.planning.resolve.settle import Trial, settle, variants
from tianji.planning.tasks import gathers, probe_tasks

Tell: TypeAlias = Callable[[str], None]  # shows a sentence to the person who waits

ONE_OF_SEVERAL_S = 20.0  # time to measure each of several variants


def trials(
    config: RunConfig,
    env: EnvSources,
    machine: Machine,
    probe: Probe,
    tell: Tell,
    fresh: bool = False,
) -> list[Trial]:
    """Return a profile of every variant of the config; one that cannot run is left out."""
    made: list[Trial] = []
    first, *others = variants(config)
    for values in (first, *others):
        settled = settle(config, values)
        try:
            resolve(settled, machine, probe)
        except UsageError:
            if values is first:
                raise
            continue
        if values:
            tell(f"With {', '.join(f'{path} = {value}' for path, value in values.items())}.")
        profile = None if fresh else kept_profile(settled, env, machine)
        if profile is None:
            profile = _measured(settled, env, machine, probe, tell, values, is_one=not others)
        made.append(Trial(values, profile, machine, demand_of(settled, probe)))
    return made


def virtual_costs(spec: RunSpec, tell: Tell) -> Profile | None:
    """Return the profile for the virtual engine, kept or measured now.

    None with plan.source `rule`: the engine then uses a table that is the same on every machine.
    None too for algorithms that gather gradients: their times are given (RunConfig.times).
    """
    config, machine = spec.config, read_machine()
    if config.plan.source == "rule" or gathers(config):
        return None
    probe = probe_tasks(config, spec.env)
    return trials(config, spec.env, machine, probe, tell)[0].profile


def _measured(
    config: RunConfig,
    env: EnvSources,
    machine: Machine,
    probe: Probe,
    tell: Tell,
    values: Mapping[str, int],
    is_one: bool,
) -> Profile:
    from tianji.planning.measure.measure import LIMIT_S, measure

    limit_s = LIMIT_S if is_one else ONE_OF_SEVERAL_S
    profile = measure(config, env, machine, probe, tell, dict(values), limit_s)
    is_complete = config.engine != "local" or bool(profile.rehearsals)
    if env == config.env and is_complete:  # a callable has no name to keep it under
        save(key_of(config, machine), profile)
    return profile
