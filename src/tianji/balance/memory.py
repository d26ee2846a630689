"""What a run takes of the machine's memory, part by part, and the arithmetic where it does not fit.

Shared memory is counted as main memory: it lies in memfds, which count against the control group's
limit and not against the size of /dev/shm. What processes share, such as libraries, counts once:
each has its part of it. Nothing of a run lies on a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tianji.balance.demand import Demand
from tianji.errors import UsageError

if TYPE_CHECKING:
    from tianji.balance.costs import ActorWork

SAFE_MEMORY_SHARE = 0.8
SUPERVISOR_BYTES = 80 << 20  # resident, with gymnasium and rich imported and without torch
TOTAL = "total"


def memory_parts(
    demand: Demand, num_actors: int, actor: ActorWork, learner_bytes: int, policy_bytes: int
) -> dict[str, int]:
    """Bytes by what they are for, and their total; `gpu` stands apart."""
    shared = demand.shared[num_actors]
    parts = {
        "actors": num_actors * actor.memory_bytes,
        "learner": learner_bytes,
        "evaluator": actor.memory_bytes if demand.has_evaluator else 0,
        "supervisor": SUPERVISOR_BYTES,
        "unrolls_in_flight": shared.in_flight,
        "replay": shared.replay,
        "control": shared.control,
        "policy": demand.policy_copies * policy_bytes,
    }
    return {**parts, TOTAL: sum(parts.values()), "gpu": 0}


def fits(parts: Mapping[str, int], memory_bytes: int) -> bool:
    return parts[TOTAL] <= memory_bytes * SAFE_MEMORY_SHARE


def refuse(parts: Mapping[str, int], num_actors: int, memory_bytes: int) -> UsageError:
    """The smallest way to run it, as a sum."""
    terms = " + ".join(
        f"{name.replace('_', ' ')} {_mib(size)}"
        for name, size in parts.items()
        if name not in (TOTAL, "gpu") and size
    )
    return UsageError(
        f"This run does not fit, even with {num_actors} actor(s): {terms} = {_mib(parts[TOTAL])} "
        f"MiB of main memory (shared memory included), and {_mib(memory_bytes)} MiB are free, of "
        f"which at most {SAFE_MEMORY_SHARE:.0%} = {_mib(memory_bytes * SAFE_MEMORY_SHARE)} MiB are "
        "used. Use fewer environments, a smaller replay_size or shorter unrolls."
    )


def _mib(size: float) -> str:
    return f"{size / 2**20:,.0f}"
