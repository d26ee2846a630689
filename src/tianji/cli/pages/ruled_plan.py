"""A plan by rule as people and scripts read it: of a run on a GPU, which the planner does not
measure, or of one whose actors and learner never wait, which needs no balance."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType

from tianji.cli.pages.memory import memory_report, memory_text, sizes_text
from tianji.config.plan import RunPlan
from tianji.planning.planner import Planned
from tianji.planning.resolve.slots import Run, estimated_memory
from tianji.planning.solve.demand import RunMemory


def ruled_facts(planned: Planned) -> dict[str, RenderableType]:
    plan = planned.plan
    facts: dict[str, RenderableType] = {
        "device": f"{plan.device}  inference {plan.inference}",
        "balance": _balance(plan),
        "memory": memory_text(_memory(planned)),
    }
    if plan.gpu_bytes:
        facts["GPU memory"] = sizes_text(plan.gpu_bytes)
    return facts


def ruled_report(planned: Planned) -> dict[str, Any]:
    """Return what scripts read, beside the shares."""
    plan, memory = planned.plan, _memory(planned)
    return {
        "device": plan.device,
        "inference": plan.inference,
        "balance": plan.balance,
        "ratio": plan.ratio if plan.balance == "paced" else None,
        "memory_bytes": memory.total,
        "memory": memory_report(planned, memory),
        "reasons": ruled_reasons(planned),
    }


def ruled_reasons(planned: Planned) -> list[str]:
    return [planned.note, *planned.plan.notes]


def _balance(plan: RunPlan) -> str:
    if plan.balance == "free":
        return "free: neither waits; ratio and lag depend on the speeds of both, and are counted"
    return f"paced: ratio {plan.ratio:g}, lag {plan.lag_target} of at most {plan.max_lag} versions"


def _memory(planned: Planned) -> RunMemory:
    run = Run(planned.config, planned.probe, device=planned.plan.device)
    return estimated_memory(run, planned.plan.num_actors)
