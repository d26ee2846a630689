"""Auditions: the plans that promise most are rehearsed, so that the choice rests on the real thing.

The plan that looks best is tried first. What it reached corrects what the others promise, and the
next one is tried, as long as one that was not tried may be better. The winner is tried once more:
it was chosen for its luck, too, and what it reaches is a promise.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from tianji.balance.candidates import Candidate, candidates
from tianji.balance.profile import Profile, Rehearsal
from tianji.config.machine import Machine
from tianji.engines.spec import RunSpec
from tianji.envs.build import Probe
from tianji.errors import WorkerLost
from tianji.profile.rehearse import ENOUGH_VERSIONS, SETTLE_S, SETTLE_VERSIONS, rehearse
from tianji.programs.resolve import demand_of, resolve

REHEARSAL_S = 2.5
MOST = 3
PATIENCE = 2.0
"""A plan that takes so many times longer than it should is judged by what it did."""
WORTH_TRYING = 0.85
"""Plans that promise less than this share of the best one are not tried: costs are not that far
off."""


class Auditions:
    """Holds rehearsals until the deadline."""

    def __init__(
        self,
        spec: RunSpec,
        machine: Machine,
        probe: Probe,
        deadline_s: float,
        start_up_s: float,
        tell: Callable[[str], None],
    ) -> None:
        self._spec = spec
        self._machine = machine
        self._probe = probe
        self._deadline_s = deadline_s
        self._start_up_s = start_up_s
        self._tell = tell
        self._demand = demand_of(spec.config, probe)

    def hold(self, profile: Profile) -> Profile:
        """The profile with what was rehearsed."""
        for _ in range(MOST):
            chosen = self._next(profile)
            if chosen is None:
                break
            try:
                profile = self._with_rehearsal(profile, chosen)
            except WorkerLost as error:
                self._tell(f"{error} The plan rests on costs.")
                return profile
        winner = candidates(profile, self._machine, self._demand)[0]
        if winner.is_rehearsed and self._seconds_for(winner) <= self._left_s():
            with contextlib.suppress(WorkerLost):  # what it reached before must do
                profile = self._with_rehearsal(profile, winner)
        return profile

    def _with_rehearsal(self, profile: Profile, chosen: Candidate) -> Profile:
        rehearsals = (*profile.rehearsals, self._rehearse(chosen))
        return profile.model_copy(update={"rehearsals": rehearsals})

    def _left_s(self) -> float:
        return self._deadline_s - time.monotonic()

    def _next(self, profile: Profile) -> Candidate | None:
        """The best one that was not tried, of those for which there is time."""
        ranked = candidates(profile, self._machine, self._demand)
        best = max(candidate.prediction.produced for candidate in ranked)
        for candidate in ranked:
            is_worth_it = candidate.prediction.produced >= WORTH_TRYING * best
            has_time = self._seconds_for(candidate) <= self._left_s()
            if is_worth_it and has_time and not candidate.is_rehearsed:
                return candidate
        return None

    def _seconds_for(self, candidate: Candidate) -> float:
        version_s = self._demand.steps_per_version / candidate.prediction.produced
        settling_s = max(SETTLE_S, SETTLE_VERSIONS * version_s)
        steady_s = max(REHEARSAL_S, min(ENOUGH_VERSIONS * version_s, 3 * REHEARSAL_S))
        crowd = max(1.0, (candidate.num_actors + 1) / len(self._machine.cores))
        return self._start_up_s * crowd + settling_s + steady_s

    def _rehearse(self, chosen: Candidate) -> Rehearsal:
        shares = {
            "num_actors": chosen.num_actors,
            "learner_threads": chosen.learner_threads,
            "actor_threads": chosen.actor_threads,
        }
        spec = self._spec
        config = spec.config.model_copy(update=shares)
        plan = resolve(config, self._machine, self._probe)
        trial = RunSpec(config, plan, spec.spaces, spec.env, Path())
        limit_s = min(self._left_s(), PATIENCE * self._seconds_for(chosen))
        rehearsal = rehearse(trial, REHEARSAL_S, limit_s)
        self._tell(
            f"Rehearsed {chosen.num_actors} actor(s) with {chosen.learner_threads} learner "
            f"thread(s): {rehearsal.produced:,.0f} steps/s."
        )
        return rehearsal
