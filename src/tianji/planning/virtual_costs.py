"""What a run costs on the virtual clock: by a profile of such a run on this machine."""

from __future__ import annotations

from tianji.config.machine import read_machine
from tianji.costs.profile import Profile
from tianji.engines.spec import RunSpec
from tianji.planning.profiles import Tell, trials
from tianji.planning.tasks import gathers, probe_tasks


def virtual_costs(spec: RunSpec, tell: Tell) -> Profile | None:
    """Kept or, without one, measured now; None with plan.source `rule`: then the engine has a table
    of its own, which is the same on every machine. None too where gradients are gathered: their
    times are given (RunConfig.times)."""
    config, machine = spec.config, read_machine()
    if config.plan.source == "rule" or gathers(config):
        return None
    found = probe_tasks(config, spec.env)
    return trials(config, spec.env, machine, found, tell)[0].profile
