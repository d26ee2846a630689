"""A plan by rule as people and scripts read it: of a run on a GPU, whose place of inference test
runs may have decided, or of one whose actors and learner never wait, which needs no balance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType

from tianji.cli.pages.memory import memory_report, memory_text, sizes_text
from tianji.config.machine import Machine
from tianji.config.plan import RunPlan
from tianji.costs.profile import RATES, Rehearsal
from tianji.planning.keep import places_key
from tianji.planning.planned import Placed, Planned
from tianji.planning.resolve.resolve import memory_of
from tianji.programs.one_group import program_for
from tianji.types import RoleKind
from tianji.wording import to_count

KINDS: tuple[RoleKind, ...] = ("actor", "inference", "buffer", "learner", "evaluator")


def ruled_facts(planned: Planned) -> dict[str, RenderableType]:
    plan, placed = planned.plan, planned.placed
    together = f", {plan.actors_per_worker} actors in each process"
    in_turn = together if plan.actors_per_worker > 1 and plan.inference != "learner" else ""
    facts: dict[str, RenderableType] = {
        "device": f"{plan.device}  inference {plan.inference}{in_turn}",
        "balance": _balance(plan),
    }
    if placed is not None:
        measured = _measured(placed)
        facts["steps/s"] = "  ".join(f"{n} {to_count(getattr(measured, n))}" for n in RATES)
    facts["memory"] = memory_text(memory_of(planned.config, planned.probe, plan))
    if plan.gpu_bytes:
        facts["GPU memory"] = sizes_text(plan.gpu_bytes)
    return facts


def ruled_report(planned: Planned, machine: Machine) -> dict[str, Any]:
    """Return what scripts read, beside the shares."""
    plan, memory = planned.plan, memory_of(planned.config, planned.probe, planned.plan)
    report = {
        "roles": ruled_roles(planned),
        "balance": plan.balance,
        "ratio": plan.target_ratio,
        "memory_bytes": memory.total,
        "memory": memory_report(planned, memory),
        "reasons": ruled_reasons(planned),
    }
    return report if planned.placed is None else report | _trials(planned, planned.placed, machine)


def _trials(planned: Planned, placed: Placed, machine: Machine) -> dict[str, Any]:
    measured = _measured(placed)
    return {
        "planning_s": planned.planning_s,
        "predicted": {name: getattr(measured, name) for name in RATES},
        "lag_versions": measured.lag_versions,
        "places": [
            {
                "inference": trial.inference,
                "steps_per_s": trial.rate,
                "failure": trial.failure or None,
            }
            for trial in placed.trials.trials
        ],
        "from_cache": placed.from_cache,
        "profile_key": places_key(planned.config, machine, planned.plan.device),
    }


def ruled_roles(planned: Planned) -> dict[str, Mapping[str, int]]:
    """Return processes and threads of each kind of role; a role in the learner's process has no
    process of its own."""
    program = program_for(planned.config, planned.plan)
    (learner,) = program.of_kind("learner")
    found: dict[str, Mapping[str, int]] = {}
    for kind in KINDS:
        roles = program.of_kind(kind)
        names = {role.worker for role in roles}
        if kind != "learner":
            names.discard(learner.worker)
        threads = max((program.worker(name).threads for name in names), default=0)
        if roles:
            found[kind] = {"processes": len(names), "threads": threads}
    return found


def ruled_reasons(planned: Planned) -> list[str]:
    """Return where the plan comes from; what test runs have shown is among its notes already."""
    return [*([planned.note] if planned.placed is None else []), *planned.plan.notes]


def ruled_origin(planned: Planned) -> str:
    """Say whether test runs were made now; nothing where there were none."""
    if planned.placed is None:
        return ""
    if planned.placed.from_cache:
        return "The plan uses saved test runs; --fresh measures again."
    measured = f"Measured in {planned.planning_s:.0f} s."
    if any(trial.failure for trial in planned.placed.trials.trials):
        return f"{measured} A place failed, so that nothing is kept."
    return f"{measured} `tianji train` with the same settings uses it."


def _measured(placed: Placed) -> Rehearsal:
    measured = placed.trials.best.rehearsal
    assert measured is not None, "the best place has not failed"
    return measured


def _balance(plan: RunPlan) -> str:
    match plan.balance:
        case "free":
            return (
                "free: neither waits; ratio and lag depend on the speeds of both, and are counted"
            )
        case "blocking":
            return f"blocking: actors wait while a queue of {plan.queue_size} unrolls is full"
        case "dropping":
            return f"dropping: a queue of {plan.queue_size} unrolls gives up its oldest when full"
        case "limiter":
            assert plan.limiter is not None, "a plan with this balance has one"
            return (
                f"limiter: {plan.limiter.samples_per_insert:g} samples per insert, from "
                f"{plan.limiter.min_size:,} items on; window {plan.limiter.min_diff:g} to "
                f"{plan.limiter.max_diff:g}"
            )
        case "paced":
            lag = f"lag {plan.lag_target} of at most {plan.max_lag} versions"
            return f"paced: ratio {plan.ratio:g}, {lag}"
