"""The planner: the best shares of a machine, from measured costs. Pure; equations 2 to 4 of the
TianJi paper.

    maximise    min(consumption, production)
    subject to  items taken per item put = the algorithm's serial ratio
                P = B_s / N_s = the algorithm's own            (a batch over what it is drawn from)
                cores of the actors + cores of the learner = cores of the machine
                memory of all processes <= memory of the machine

Production and consumption are one rate in the steady state, because the balance holds their ratio:
steps per version divided by the version's duration (period.py). There are few enough choices to
compute all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from tianji.config.machine import Machine
from tianji.costs.profile import Profile
from tianji.planning.solve.candidates import Candidate, candidates, one_more_core
from tianji.planning.solve.demand import Demand
from tianji.planning.solve.reasons import advise, explain_choice


class RoleShare(TypedDict):
    """The share of one kind of role; cores are fractions if threads share them."""

    processes: int
    cores: float
    threads: int


@dataclass(frozen=True, slots=True)
class Solution:
    """The chosen candidate, the reasons for it in sentences, and what would change the limit."""

    chosen: Candidate
    demand: Demand
    num_cores: int
    reasons: tuple[str, ...]
    advice: tuple[str, ...]

    def roles(self) -> dict[str, RoleShare]:
        """Return processes, cores and threads by role.

        With more threads than cores, every thread has an even share of them.
        """
        chosen, has_evaluator = self.chosen, self.demand.has_evaluator
        share = min(1.0, self.num_cores / (chosen.num_threads + has_evaluator))

        def role(processes: int, threads: int) -> RoleShare:
            cores = round(processes * threads * share, 2)
            return RoleShare(processes=processes, cores=cores, threads=threads)

        shares = {
            "actor": role(chosen.num_actors, chosen.actor_threads),
            "buffer": role(0, 0),
            "learner": role(1, chosen.learner_threads),
        }
        return {**shares, "evaluator": role(1, 1)} if has_evaluator else shares


def solve(profile: Profile, machine: Machine, demand: Demand) -> Solution:
    """Return the best way to share this machine; raise UsageError if none fits."""
    found = candidates(profile, machine, demand)
    return Solution(
        chosen=found[0],
        demand=demand,
        num_cores=len(machine.cores),
        reasons=explain_choice(found, profile, machine, demand),
        advice=advise(found[0], one_more_core(profile, machine, demand), profile),
    )
