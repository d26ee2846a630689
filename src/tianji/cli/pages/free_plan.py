"""The plan of a run whose actors and learner never wait for each other, as people and scripts read
it: its shares follow a rule, and its rates and ratio depend on the speeds of both sides."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType

from tianji.cli.pages.memory import memory_report, memory_text
from tianji.planning.planner import Planned
from tianji.planning.resolve.slots import Run, estimated_memory
from tianji.planning.solve.demand import RunMemory

BALANCE = "free: neither waits; ratio and lag depend on the speeds of both, and are counted"


def free_facts(planned: Planned) -> dict[str, RenderableType]:
    return {"balance": BALANCE, "memory": memory_text(_memory(planned))}


def free_report(planned: Planned) -> dict[str, Any]:
    """Return what scripts read, beside the shares."""
    memory = _memory(planned)
    return {
        "balance": planned.plan.balance,
        "memory_bytes": memory.total,
        "memory": memory_report(planned, memory),
        "reasons": free_reasons(planned),
    }


def free_reasons(planned: Planned) -> list[str]:
    return [planned.note, *planned.plan.notes]


def _memory(planned: Planned) -> RunMemory:
    run = Run(planned.config, planned.probe, device=planned.plan.device)
    return estimated_memory(run, planned.plan.num_actors)
