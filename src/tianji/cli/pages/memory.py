"""The memory that a plan takes, as people and as scripts read it."""

from __future__ import annotations

from tianji.engines.assembly.wiring import replay_layout
from tianji.planning.planner import Planned
from tianji.planning.solve.demand import RunMemory, mib


def memory_text(memory: RunMemory) -> str:
    shown = ((name, size) for name, size in memory.parts.items() if size >= 2**20)
    terms = ", ".join(f"{name.replace('_', ' ')} {mib(size)}" for name, size in shown)
    return f"{mib(memory.total)} MiB: {terms}"


def memory_report(planned: Planned, memory: RunMemory) -> dict[str, int]:
    """Return the bytes of each part; those of a replay store wherever it lies."""
    layout = replay_layout(planned.plan)
    on_gpu = layout.observation_bytes if layout and planned.plan.replay_on_gpu else 0
    return {
        **memory.parts,
        "total": memory.total,
        "gpu": on_gpu,
        "replay_bytes": memory.shared.replay + on_gpu,
    }
