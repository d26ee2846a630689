"""The memory that a plan takes, as people and as scripts read it."""

from __future__ import annotations

from collections.abc import Mapping

from tianji.planning.planner import Planned
from tianji.planning.solve.demand import RunMemory, mib


def memory_text(memory: RunMemory) -> str:
    return sizes_text(memory.parts)


def sizes_text(sizes: Mapping[str, int]) -> str:
    """Name the parts of at least 1 MiB behind their sum."""
    shown = ((name, size) for name, size in sizes.items() if size >= 2**20)
    terms = ", ".join(f"{name.replace('_', ' ')} {mib(size)}" for name, size in shown)
    return f"{mib(sum(sizes.values()))} MiB: {terms}"


def memory_report(planned: Planned, memory: RunMemory) -> dict[str, int]:
    """Return the bytes of each part; those of a replay store wherever it lies."""
    gpu = planned.plan.gpu_bytes
    return {
        **memory.parts,
        "total": memory.total,
        **{f"gpu_{name}": size for name, size in gpu.items()},
        "gpu": sum(gpu.values()),
        "replay_bytes": memory.shared.replay + gpu.get("replay", 0),
    }
