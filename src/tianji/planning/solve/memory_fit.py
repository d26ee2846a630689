"""What a run takes of the machine's memory, part by part, and the arithmetic where it does not fit.

Shared memory is counted as main memory: it lies in memfds, which count against the control group's
limit and not against the size of /dev/shm. What processes share, such as libraries, counts once:
each has its part of it. Nothing of a run lies on a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tianji.errors import UsageError
from tianji.planning.solve.demand import SharedBytes

SAFE_MEMORY_SHARE = 0.8
SUPERVISOR_BYTES = 80 << 20  # resident, with gymnasium and rich imported and without torch
SMALLEST_TOLD = 1 << 20
"""Parts below this are left out of the sum that people read."""
TOTAL = "total"


@dataclass(frozen=True, slots=True)
class ProcessBytes:
    """Memory of a run's processes, one of each kind, and of the published policy."""

    actor: int
    """One actor; 0 where actors have no processes of their own."""
    learner: int
    policy: int
    """Every copy of the published policy, and of sums of gradients."""
    evaluator: int = 0
    """0 where there is none."""
    supervisor: int = SUPERVISOR_BYTES


def memory_parts(shared: SharedBytes, num_actors: int, each: ProcessBytes) -> dict[str, int]:
    """Bytes by what they are for, and their total; `gpu` stands apart."""
    parts = {
        "actors": num_actors * each.actor,
        "learner": each.learner,
        "evaluator": each.evaluator,
        "supervisor": each.supervisor,
        "unrolls_in_flight": shared.in_flight,
        "replay": shared.replay,
        "control": shared.control,
        "policy": each.policy,
    }
    return {**parts, TOTAL: sum(parts.values()), "gpu": 0}


def fits(parts: Mapping[str, int], memory_bytes: int) -> bool:
    return parts[TOTAL] <= memory_bytes * SAFE_MEMORY_SHARE


def refuse(parts: Mapping[str, int], num_actors: int, memory_bytes: int) -> UsageError:
    """The error for a run that does not fit, with the sum of its parts."""
    terms = " + ".join(
        _term(name, size, num_actors)
        for name, size in parts.items()
        if name not in (TOTAL, "gpu") and size >= SMALLEST_TOLD
    )
    usable = memory_bytes * SAFE_MEMORY_SHARE
    return UsageError(
        f"This run does not fit in memory: {terms} = {_mib(parts[TOTAL])} MiB of main memory "
        f"(shared memory included). {_mib(memory_bytes)} MiB are free, and a run may take "
        f"{SAFE_MEMORY_SHARE:.0%} of that, {_mib(usable)} MiB. {_advice(parts, num_actors, usable)}"
    )


def _term(name: str, size: int, num_actors: int) -> str:
    if name == "actors" and num_actors > 1:
        return f"{num_actors} actors x {_mib(size / num_actors)} MiB"
    return f"{name.replace('_', ' ')} {_mib(size)} MiB"


def _advice(parts: Mapping[str, int], num_actors: int, usable: float) -> str:
    """What to set: fewer actors where that is enough."""
    each = parts["actors"] / num_actors
    most = int((usable - parts[TOTAL] + parts["actors"]) / each) if each else 0
    if 0 < most < num_actors:
        return f"At most {most} such actors fit: use a smaller num_actors."
    return (
        "Use fewer environments (num_envs), a smaller replay_size, shorter unrolls or a smaller "
        "network."
    )


def _mib(size: float) -> str:
    return f"{size / 2**20:,.0f}"
