"""Find a better plan for a run that is out of balance; it is used from the next checkpoint on."""

from __future__ import annotations

import time
from dataclasses import replace

from tianji.balance.drift import Speeds
from tianji.config.machine import Machine
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.costs.profile import Profile
from tianji.envs.build import EnvSources, Probe
from tianji.errors import UsageError
from tianji.planning.keep import SHARES, kept_profile
from tianji.planning.planner import Planned
from tianji.planning.resolve.resolve import demand_of, resolve
from tianji.planning.solve.rescale import Observed, rescaled
from tianji.planning.solve.solve import solve
from tianji.types import Clock
from tianji.wording import to_percent

WORTH_SHARE = 0.10  # a new plan costs a restart of the workers; it must be this much faster
PAUSE_S = 60.0  # between two changes of plan: oscillating speeds are not followed


class Replanner:
    """`replanner(speeds)` returns whether it has found a better plan; `take()` returns that plan.

    note: a sentence about the last change.
    """

    def __init__(
        self,
        config: RunConfig,
        plan: RunPlan,
        machine: Machine,
        probe: Probe,
        profile: Profile,
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        self._config = config
        self._plan = plan
        self._machine = machine
        self._probe = probe
        self._profile = profile
        self._now_ns = now_ns
        self._changed_ns: int | None = None
        self._better: RunPlan | None = None
        self.changes = 0
        self.note = ""

    def __call__(self, speeds: Speeds) -> bool:
        is_soon = self._changed_ns is not None and (
            self._now_ns() - self._changed_ns < PAUSE_S * 1e9
        )
        if is_soon or speeds.produced <= 0 or speeds.received <= 0:
            return False
        profile = rescaled(self._profile, observed_speeds(speeds, self._plan))
        demand = demand_of(self._config, self._probe)
        same = replace(demand, **{name: getattr(self._plan, name) for name in SHARES})
        try:
            now, better = (solve(profile, self._machine, asked) for asked in (same, demand))
        except UsageError:  # memory has become short
            return False
        gain = better.chosen.prediction.produced / now.chosen.prediction.produced - 1
        if gain < WORTH_SHARE:
            return False
        self._better = resolve(self._config, self._machine, self._probe, better)
        self.note = (
            f"The plan changes at this checkpoint, from {now.chosen.in_words()} to "
            f"{better.chosen.in_words()}: at the present speeds that should be "
            f"{to_percent(gain)} faster, {better.chosen.prediction.produced:,.0f} steps/s."
        )
        return True

    def take(self) -> RunPlan:
        """Return the better plan, which is in use from now on."""
        assert self._better is not None
        self._plan, self._better = self._better, None
        self._changed_ns = self._now_ns()
        self.changes += 1
        return self._plan


def replanner_for(planned: Planned, env: EnvSources, machine: Machine) -> Replanner | None:
    """Return a replanner for this run; None if there is no profile of it."""
    config, solved = planned.config, planned.solved
    profile = solved.profile if solved else kept_profile(config, env, machine)
    if profile is None:
        return None
    return Replanner(config, planned.plan, machine, planned.probe, profile)


def observed_speeds(speeds: Speeds, plan: RunPlan) -> Observed:
    """Return the work that an unroll and a version take, from rates and shares of time."""
    unrolls_per_s = speeds.produced / plan.steps_per_unroll
    versions_per_s = speeds.received / (plan.unrolls_per_version * plan.steps_per_unroll)
    return Observed(
        envs_per_actor=plan.envs_per_actor,
        actor_threads=plan.actor_threads,
        learner_threads=plan.learner_threads,
        unroll_s=speeds.acting / unrolls_per_s,
        version_s=speeds.learning / versions_per_s,
        unroll_cpu_s=speeds.acting_cpu / unrolls_per_s,
        version_cpu_s=speeds.learning_cpu / versions_per_s,
    )
