"""Rehearse the plans with the highest predicted rates, and correct the predictions by the results.

The best plan is rehearsed first. Its result corrects the predictions of the others, and the next
one is rehearsed, as long as one that was not may be better. A plan that fails is not used. The
winner is rehearsed twice: the first result may have been good by chance.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tianji.config.machine import Machine
from tianji.costs.profile import SHARES, Profile, Rehearsal
from tianji.engines.spec import RunSpec
from tianji.envs.build import Probe
from tianji.errors import WorkerLost
from tianji.planning.rehearse.rehearsal import (
    ENOUGH_VERSIONS,
    SETTLE_S,
    SETTLE_VERSIONS,
    rehearse,
)
from tianji.planning.resolve.resolve import demand_of, resolve
from tianji.planning.solve.candidates import Candidate, candidates
from tianji.planning.solve.demand import Demand

REHEARSAL_S = 2.5
MOST = 3
PATIENCE = 2.0  # a plan that takes this many times longer than expected is judged by what it did
WORTH_TRYING = 0.85  # of the best predicted rate; costs are not wrong by more than that


@dataclass(frozen=True)
class Auditions:
    """Rehearses plans until the deadline. start_up_s: the time in which a run starts."""

    spec: RunSpec
    machine: Machine
    probe: Probe
    deadline_s: float
    start_up_s: float
    tell: Callable[[str], None]

    @cached_property
    def _demand(self) -> Demand:
        return demand_of(self.spec.config, self.probe)

    def hold(self, profile: Profile) -> Profile:
        """Return the profile with its rehearsals."""
        for _ in range(MOST):
            chosen = self._next(profile)
            if chosen is None:
                break
            try:
                rehearsal = self._rehearse(chosen)
            except WorkerLost as error:
                self.tell(f"{error} A plan with {chosen.in_words()} is not used.")
                rehearsal = _failed(chosen)
            profile = self._with(profile, chosen, rehearsal)
        if not any(rehearsal.produced for rehearsal in profile.rehearsals):
            if profile.rehearsals:
                self.tell("Every test run of a plan failed: the plan uses measured costs alone.")
            return profile.model_copy(update={"rehearsals": ()})
        winner = self._ranked(profile)[0]
        if winner.is_rehearsed and self._seconds_for(winner) <= self._left_s():
            with contextlib.suppress(WorkerLost):  # then its first result has to do
                profile = self._with(profile, winner, self._rehearse(winner))
        return profile

    def _ranked(self, profile: Profile) -> list[Candidate]:
        return candidates(profile, self.machine, self._demand)

    def _with(self, profile: Profile, chosen: Candidate, rehearsal: Rehearsal) -> Profile:
        computed = self._demand.steps_per_version / chosen.period.seconds
        noted = rehearsal.model_copy(update={"computed": computed})
        return profile.model_copy(update={"rehearsals": (*profile.rehearsals, noted)})

    def _left_s(self) -> float:
        return self.deadline_s - time.monotonic()

    def _next(self, profile: Profile) -> Candidate | None:
        """Return the best plan that was not rehearsed and that there is time for."""
        tried = {rehearsal.shares for rehearsal in profile.rehearsals}
        possible = [
            candidate
            for candidate in self._ranked(profile)
            if candidate.shares in tried or self._seconds_for(candidate) <= self._left_s()
        ]
        best = max((candidate.prediction.produced for candidate in possible), default=0.0)
        worth = (c for c in possible if c.prediction.produced >= WORTH_TRYING * best)
        return next((c for c in worth if c.shares not in tried), None)

    def _seconds_for(self, candidate: Candidate) -> float:
        """Return the time for start-up, warm-up, settling and the rehearsal itself."""
        version_s = self._demand.steps_per_version / candidate.prediction.produced
        settling_s = max(SETTLE_S, SETTLE_VERSIONS * version_s)
        steady_s = max(REHEARSAL_S, min(ENOUGH_VERSIONS * version_s, 3 * REHEARSAL_S))
        crowd = max(1.0, (candidate.num_actors + 1) / len(self.machine.cores))
        plan = self.spec.plan
        warmup_steps = plan.warmup_unrolls * plan.steps_per_unroll
        warm_up = warmup_steps / self._demand.steps_per_version
        starting_s = self.start_up_s + warm_up * candidate.period.terms["sampling"]
        return starting_s * crowd + settling_s + steady_s

    def _rehearse(self, chosen: Candidate) -> Rehearsal:
        shares = {name: getattr(chosen, name) for name in SHARES}
        config = self.spec.config.model_copy(update=shares)
        plan = resolve(config, self.machine, self.probe, memory=chosen.memory)
        trial = RunSpec(config, plan, self.spec.spaces, self.spec.env, Path())
        limit_s = min(self._left_s(), PATIENCE * self._seconds_for(chosen))
        rehearsal = rehearse(trial, REHEARSAL_S, limit_s)
        self.tell(f"Tried {chosen.in_words()}: {rehearsal.produced:,.0f} steps/s.")
        return rehearsal


def _failed(candidate: Candidate) -> Rehearsal:
    shares = {name: getattr(candidate, name) for name in SHARES}
    return Rehearsal(**shares, produced=0.0, received=0.0, trained=0.0, lag_versions=0.0)
