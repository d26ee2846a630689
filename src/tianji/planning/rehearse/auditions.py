"""Auditions: the plans that promise most are rehearsed, so that the choice rests on the real thing.

The plan that looks best is tried first. What it reached corrects what the others promise, and the
next one is tried, as long as one that was not tried may be better. One that fails is out. The
winner is tried once more: it was chosen for its luck, too, and what it reaches is a promise.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from tianji.config.machine import Machine
from tianji.costs.profile import Profile, Rehearsal
from tianji.engines.spec import RunSpec
from tianji.envs.build import Probe
from tianji.errors import WorkerLost
from tianji.planning.rehearse.rehearsal import ENOUGH_VERSIONS, SETTLE_S, SETTLE_VERSIONS, rehearse
from tianji.planning.resolve.resolve import demand_of, resolve
from tianji.planning.solve.candidates import Candidate, candidates
from tianji.wording import counted

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
        self._warmup_steps = spec.plan.warmup_unrolls * spec.plan.steps_per_unroll

    def hold(self, profile: Profile) -> Profile:
        """The profile with what was rehearsed."""
        for _ in range(MOST):
            chosen = self._next(profile)
            if chosen is None:
                break
            try:
                rehearsal = self._rehearse(chosen)
            except WorkerLost as error:
                self._tell(f"{error} A plan with {_in_words(chosen)} is not used.")
                rehearsal = _failed(chosen)
            profile = self._with(profile, chosen, rehearsal)
        if not any(rehearsal.produced for rehearsal in profile.rehearsals):
            if profile.rehearsals:
                self._tell("Every test run of a plan failed: the plan uses measured costs alone.")
            return profile.model_copy(update={"rehearsals": ()})
        winner = candidates(profile, self._machine, self._demand)[0]
        if winner.is_rehearsed and self._seconds_for(winner) <= self._left_s():
            with contextlib.suppress(WorkerLost):  # what it reached before must do
                profile = self._with(profile, winner, self._rehearse(winner))
        return profile

    def _with(self, profile: Profile, chosen: Candidate, rehearsal: Rehearsal) -> Profile:
        computed = self._demand.steps_per_version / chosen.period.seconds
        noted = rehearsal.model_copy(update={"computed": computed})
        return profile.model_copy(update={"rehearsals": (*profile.rehearsals, noted)})

    def _left_s(self) -> float:
        return self._deadline_s - time.monotonic()

    def _next(self, profile: Profile) -> Candidate | None:
        """The best one that was not tried, of those for which there is time."""
        tried = {rehearsal.shares for rehearsal in profile.rehearsals}
        possible = [
            candidate
            for candidate in candidates(profile, self._machine, self._demand)
            if candidate.shares in tried or self._seconds_for(candidate) <= self._left_s()
        ]
        best = max((candidate.prediction.produced for candidate in possible), default=0.0)
        for candidate in possible:
            is_worth_it = candidate.prediction.produced >= WORTH_TRYING * best
            if is_worth_it and candidate.shares not in tried:
                return candidate
        return None

    def _seconds_for(self, candidate: Candidate) -> float:
        """Starting, warming up at the pace of the actors, settling, and the rehearsal itself."""
        version_s = self._demand.steps_per_version / candidate.prediction.produced
        settling_s = max(SETTLE_S, SETTLE_VERSIONS * version_s)
        steady_s = max(REHEARSAL_S, min(ENOUGH_VERSIONS * version_s, 3 * REHEARSAL_S))
        crowd = max(1.0, (candidate.num_actors + 1) / len(self._machine.cores))
        warm_up = self._warmup_steps / self._demand.steps_per_version
        starting_s = self._start_up_s + warm_up * candidate.period.terms["sampling"]
        return starting_s * crowd + settling_s + steady_s

    def _rehearse(self, chosen: Candidate) -> Rehearsal:
        shares = {
            "num_actors": chosen.num_actors,
            "learner_threads": chosen.learner_threads,
            "actor_threads": chosen.actor_threads,
        }
        spec = self._spec
        config = spec.config.model_copy(update=shares)
        plan = resolve(config, self._machine, self._probe, memory=chosen.memory)
        trial = RunSpec(config, plan, spec.spaces, spec.env, Path())
        limit_s = min(self._left_s(), PATIENCE * self._seconds_for(chosen))
        rehearsal = rehearse(trial, REHEARSAL_S, limit_s)
        self._tell(f"Tried {_in_words(chosen)}: {rehearsal.produced:,.0f} steps/s.")
        return rehearsal


def _in_words(candidate: Candidate) -> str:
    actors = counted(candidate.num_actors, "actor")
    return f"{actors} and {counted(candidate.learner_threads, 'learner thread')}"


def _failed(candidate: Candidate) -> Rehearsal:
    return Rehearsal(
        num_actors=candidate.num_actors,
        learner_threads=candidate.learner_threads,
        actor_threads=candidate.actor_threads,
        produced=0.0,
        received=0.0,
        trained=0.0,
        lag_versions=0.0,
    )
