"""Profiles that were kept of such runs on this machine. Every start of a run looks here, so little
is imported."""

from __future__ import annotations

from tianji.config.machine import Machine
from tianji.config.run import RunConfig
from tianji.costs.profile import Profile
from tianji.envs.build import EnvSources
from tianji.planning.keep import has_any, key_of, load
from tianji.planning.planner import SHARES


def kept_profile(config: RunConfig, env: EnvSources, machine: Machine) -> Profile | None:
    """The profile of such a run on this machine, if there is one. Where actors or threads are
    fixed by hand, one that was measured over all of them serves too; and to any engine, one of the
    local engine, which has rehearsals."""
    if env != config.env or not has_any():  # a function in hand may be another one the next time
        return None
    free = config.model_copy(update=dict.fromkeys(SHARES, "auto"))
    local = [asked.model_copy(update={"engine": "local"}) for asked in (config, free)]
    keys = dict.fromkeys(key_of(asked, machine) for asked in (*local, config, free))
    return next(filter(None, map(load, keys)), None)


def is_kept(config: RunConfig, env: EnvSources, machine: Machine) -> bool:
    """Whether a plan can be solved without measuring anything."""
    if not config.plan.choose:
        return kept_profile(config, env, machine) is not None
    from tianji.planning.resolve.settle import settle, variants

    return all(kept_profile(settle(config, v), env, machine) for v in variants(config))
