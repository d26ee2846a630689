"""Rates of a configuration on this machine, from a few seconds of the real thing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tianji.config.machine import read_machine

if TYPE_CHECKING:
    from tianji.config.run import RunConfig
    from tianji.costs.profile import Rehearsal


def measure_rates(config: RunConfig, seconds: float) -> Rehearsal:
    """Steady rates in environment steps per second, and the mean lag. Whatever is `auto` in the
    config follows the rule of resolve: what is to be compared has its actors and threads fixed."""
    from tianji.engines.spec import RunSpec
    from tianji.envs.build import probe
    from tianji.planning.rehearse.rehearsal import rehearse
    from tianji.planning.resolve.resolve import resolve

    found = probe(config.env, config.env_kwargs)
    plan = resolve(config, read_machine(), found)
    return rehearse(RunSpec(config, plan, found.spaces, config.env, Path()), seconds)
