"""A plan whose place of inference was measured, as people and as scripts read it.

Its rates are those of the test run in the fastest place; its numbers of actors follow from a rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tianji.config.machine import Machine
from tianji.costs.profile import RATES
from tianji.planning.keep import places_key
from tianji.planning.planned import Placed, Planned
from tianji.planning.resolve.resolve import memory_of
from tianji.planning.solve.demand import RunMemory
from tianji.programs.program import program_for
from tianji.types import RoleKind
from tianji.wording import to_count, to_value


def placed_roles(planned: Planned) -> dict[str, Mapping[str, int]]:
    """Return processes and threads of each kind of role; a role in the learner's process has no
    process of its own."""
    program = program_for(planned.config, planned.plan)
    (learner,) = program.of_kind("learner")
    kinds: tuple[RoleKind, ...] = ("actor", "inference", "buffer", "learner", "evaluator")
    found: dict[str, Mapping[str, int]] = {}
    for kind in kinds:
        names = {role.worker for role in program.of_kind(kind)}
        if kind != "learner":
            names.discard(learner.worker)
        workers = [program.worker(name) for name in names]
        threads = max((worker.threads for worker in workers), default=0)
        found[kind] = {"processes": len(workers), "threads": threads}
    return found


def placed_facts(planned: Planned, placed: Placed) -> dict[str, str]:
    """Return the lines of the page that are no table."""
    plan, measured = planned.plan, placed.trials.best.rehearsal
    assert measured is not None, "the best place has not failed"
    rates = "  ".join(f"{name} {to_count(getattr(measured, name))}" for name in RATES)
    lag = f"{to_value(measured.lag_versions)} of at most {plan.max_lag} versions"
    return {
        "device": plan.device,
        "inference": f"{plan.inference}  {plan.actors_per_worker} actors in each process"
        if plan.actors_per_worker > 1
        else plan.inference,
        "steps/s": rates,
        "lag": f"{lag}  ratio {plan.ratio:g}",
    }


def placed_memory(planned: Planned) -> RunMemory:
    return memory_of(planned.config, planned.probe, planned.plan)


def placed_origin(planned: Planned, placed: Placed) -> str:
    if placed.from_cache:
        return "The plan uses saved test runs; --fresh measures again."
    return f"Measured in {planned.planning_s:.0f} s. `tianji train` with the same settings uses it."


def placed_report(planned: Planned, placed: Placed, machine: Machine) -> dict[str, Any]:
    """Return what scripts read, beside the settings and the memory."""
    plan, measured = planned.plan, placed.trials.best.rehearsal
    assert measured is not None, "the best place has not failed"
    return {
        "planning_s": planned.planning_s,
        "predicted": {name: getattr(measured, name) for name in RATES},
        "lag_versions": measured.lag_versions,
        "ratio": plan.ratio,
        "roles": placed_roles(planned),
        "places": [
            {
                "inference": trial.inference,
                "steps_per_s": trial.rate,
                "failure": trial.failure or None,
            }
            for trial in placed.trials.trials
        ],
        "reasons": list(plan.notes),
        "from_cache": placed.from_cache,
        "profile_key": places_key(planned.config, machine, plan.device),
    }
