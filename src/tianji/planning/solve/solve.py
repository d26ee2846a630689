"""The planner: shares of a machine from what was measured. Pure; equations 2 to 4 of the TianJi
paper.

    maximise    min(consumption, production)
    subject to  items taken per item put = the algorithm's serial ratio
                P = B_s / N_s = the algorithm's own            (a batch over what it is drawn from)
                cores of the actors + cores of the learner = cores of the machine
                memory of everybody <= memory of the machine

Production and consumption are one rate in the steady state, because the balance holds their ratio:
steps per version over the version's duration (period.py). The choices are few enough to try all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

from tianji.config.machine import Machine
from tianji.config.plan import Prediction
from tianji.costs.profile import Profile
from tianji.planning.solve.candidates import candidates, one_more_core
from tianji.planning.solve.demand import Demand
from tianji.planning.solve.reasons import advise, explain_choice


class RoleShare(TypedDict):
    """What one kind of role gets in all; cores are no whole number where several share them."""

    processes: int
    cores: float
    threads: int


@dataclass(frozen=True, slots=True)
class Solution:
    """The plan, its promise and its reasons."""

    num_actors: int
    envs_per_actor: int
    learner_threads: int
    actor_threads: int
    prediction: Prediction
    memory_bytes: Mapping[str, int]
    """By what it is for; `total` is the sum of main memory."""
    reasons: tuple[str, ...]
    """The reason of each choice, in sentences."""
    advice: tuple[str, ...]
    """What would change the limit, and what to mind."""
    ratio: float
    staleness: float
    num_cores: int
    has_evaluator: bool
    is_rehearsed: bool
    """The promise was measured with this very plan, not computed."""

    def roles(self) -> dict[str, RoleShare]:
        """Processes, cores and threads by role. Where there are more threads than cores, each has
        its even share of them."""
        threads = {
            "actor": self.num_actors * self.actor_threads,
            "learner": self.learner_threads,
            "evaluator": int(self.has_evaluator),
        }
        share = min(1.0, self.num_cores / sum(threads.values()))
        shares = {
            "actor": RoleShare(
                processes=self.num_actors,
                cores=round(threads["actor"] * share, 2),
                threads=self.actor_threads,
            ),
            "buffer": RoleShare(processes=0, cores=0, threads=0),
            "learner": RoleShare(
                processes=1, cores=round(threads["learner"] * share, 2), threads=threads["learner"]
            ),
        }
        if self.has_evaluator:
            shares["evaluator"] = RoleShare(processes=1, cores=round(share, 2), threads=1)
        return shares


def solve(profile: Profile, machine: Machine, demand: Demand) -> Solution:
    """The best way to share this machine; UsageError where none fits."""
    found = candidates(profile, machine, demand)
    chosen = found[0]
    return Solution(
        num_actors=chosen.num_actors,
        envs_per_actor=chosen.envs_per_actor,
        learner_threads=chosen.learner_threads,
        actor_threads=chosen.actor_threads,
        prediction=chosen.prediction,
        memory_bytes=chosen.memory_bytes,
        reasons=explain_choice(found, profile, machine, demand),
        advice=advise(chosen, one_more_core(profile, machine, demand), profile, demand),
        ratio=demand.ratio,
        staleness=demand.staleness,
        num_cores=len(machine.cores),
        has_evaluator=demand.has_evaluator,
        is_rehearsed=chosen.is_rehearsed,
    )
