"""Measured rates of a configuration on this machine, from a run of a few seconds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tianji.config.machine import read_machine

if TYPE_CHECKING:
    from tianji.config.run import RunConfig
    from tianji.costs.profile import Rehearsal


def measure_rates(config: RunConfig, seconds: float) -> Rehearsal:
    """Return steady rates in environment steps per second, and the mean lag.

    Settings that are `auto` follow the rule of `resolve`; a comparison sets actors and threads.
    """
    from tianji.engines.spec import RunSpec
    from tianji.envs.build import probe
    from tianji.planning.rehearse.rehearsal import rehearse
    from tianji.planning.resolve.resolve import resolve

    found = probe(config.env, config.env_kwargs)
    plan = resolve(config, read_machine(), found)
    return rehearse(RunSpec(config, plan, found.spaces, config.env, Path()), seconds)
