"""Probe the environments of a run before anything starts: one, or one for each actor."""

from __future__ import annotations

from tianji.algorithms.interface import Gather
from tianji.algorithms.registry import load_algorithm
from tianji.config.run import RunConfig
from tianji.envs.build import EnvSources, Probe, probe_all
from tianji.errors import UsageError


def probe_tasks(config: RunConfig, env: EnvSources, timed: bool = False) -> Probe:
    """Return what the environments are like; raise UsageError if one of them is unusable.

    timed: also make a few steps, to see how long one takes.
    """
    if config.envs:
        _check_list(config)
    return probe_all(env, config.env_kwargs, timed)


def gathers(config: RunConfig) -> bool:
    """Return whether the actors compute gradients, so that each may have its own task."""
    return isinstance(load_algorithm(config.algorithm.name).cadence(config), Gather)


def _check_list(config: RunConfig) -> None:
    name, num_tasks = config.algorithm.name, len(config.envs)
    if not gathers(config):
        raise UsageError(
            f"envs names {num_tasks} environments, but {name} trains on one: use env. Algorithms "
            "that gather gradients can train on several: malenia-nigt, which gives all tasks the "
            "same weight, or rennala-nigt."
        )
    if config.num_actors != "auto" and config.num_actors < num_tasks:
        raise UsageError(
            f"envs names {num_tasks} environments, one for each actor, but num_actors = "
            f"{config.num_actors}: {num_tasks - config.num_actors} of them would never be trained "
            f"on. Use num_actors = {num_tasks} or more, or name fewer environments."
        )
