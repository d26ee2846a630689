"""A better plan for a run that goes on: asked when an imbalance lasts, used at a checkpoint."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tianji.config.machine import Machine
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.costs.profile import Profile
from tianji.envs.build import EnvSources, Probe
from tianji.errors import UsageError
from tianji.planning.keep import kept_profile
from tianji.planning.planner import Planned
from tianji.planning.resolve.resolve import demand_of, resolve
from tianji.planning.solve.rescale import Observed, rescaled
from tianji.planning.solve.solve import Solution, solve
from tianji.types import Clock
from tianji.wording import counted

WORTH_SHARE = 0.10
"""A new plan costs a restart of the workers; it must promise this much more."""
PAUSE_S = 60.0
"""Between two changes of plan: speeds that swing are not followed."""


class Replanner:
    """`replanner(record)` is True when a better plan was found; `take()` hands it out.

    The record is that of a Report of kind `imbalance`.
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
        """What the last change promises, in a sentence."""

    def __call__(self, record: Mapping[str, Any]) -> bool:
        if self._changed_ns is not None and self._now_ns() - self._changed_ns < PAUSE_S * 1e9:
            return False
        observed = observed_speeds(record, self._plan)
        if observed is None:
            return False
        profile = rescaled(self._profile, observed)
        demand = demand_of(self._config, self._probe)
        same = replace(
            demand,
            num_actors=self._plan.num_actors,
            learner_threads=self._plan.learner_threads,
            actor_threads=self._plan.actor_threads,
        )
        try:
            now, better = (solve(profile, self._machine, d) for d in (same, demand))
        except UsageError:  # memory has become short: no time for another plan
            return False
        if better.chosen.prediction.produced < now.chosen.prediction.produced * (1 + WORTH_SHARE):
            return False
        self._better = resolve(self._config, self._machine, self._probe, better)
        self.note = _in_words(now, better)
        return True

    def take(self) -> RunPlan:
        """The plan that was promised; from now on it is the one in use."""
        assert self._better is not None
        self._plan, self._better = self._better, None
        self._changed_ns = self._now_ns()
        self.changes += 1
        return self._plan


def replanner_for(planned: Planned, env: EnvSources, machine: Machine) -> Replanner | None:
    """Whoever changes the plan of this run; None where nothing was measured to plan by."""
    config = planned.config
    known = planned.solved
    profile = known.profile if known else kept_profile(config, env, machine)
    if profile is None:
        return None
    return Replanner(config, planned.plan, machine, planned.probe, profile)


def observed_speeds(record: Mapping[str, Any], plan: RunPlan) -> Observed | None:
    """What an unroll and a version take, from rates and shares of time; None at a stand."""
    rates = record["rates_per_s"]
    if rates["produced"] <= 0 or rates["received"] <= 0:
        return None
    unrolls_per_s = rates["produced"] / plan.steps_per_unroll
    versions_per_s = rates["received"] / (plan.unrolls_per_version * plan.steps_per_unroll)
    acting, learning = _of_both_sides(record["busy_share"])
    acting_cpu, learning_cpu = _of_both_sides(record["core_share"])
    return Observed(
        envs_per_actor=plan.envs_per_actor,
        actor_threads=plan.actor_threads,
        learner_threads=plan.learner_threads,
        unroll_s=acting / unrolls_per_s,
        version_s=learning / versions_per_s,
        unroll_cpu_s=acting_cpu / unrolls_per_s,
        version_cpu_s=learning_cpu / versions_per_s,
    )


def _of_both_sides(shares: Mapping[str, float]) -> tuple[float, float]:
    """The sum over the actors, and over buffer and learner."""
    actors = sum(share for role, share in shares.items() if role.startswith("actor-"))
    return actors, shares.get("buffer", 0.0) + shares.get("learner", 0.0)


def _in_words(now: Solution, better: Solution) -> str:
    gain = better.chosen.prediction.produced / now.chosen.prediction.produced - 1
    return (
        f"The plan changes at this checkpoint, from {_shares(now)} to {_shares(better)}: at the "
        f"speeds of this run that should be {gain:.0%} faster, "
        f"{better.chosen.prediction.produced:,.0f} steps/s."
    )


def _shares(solution: Solution) -> str:
    actors = counted(solution.chosen.num_actors, "actor")
    return f"{actors} and {counted(solution.chosen.learner_threads, 'learner thread')}"
