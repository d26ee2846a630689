"""A simulated group in numbers: machines, actors, costs, set-points."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tianji.balance.set_point import SetPoint
from tianji.virtual.cluster import Machines
from tianji.virtual.costs import LearnerParts
from tianji.virtual.roles import Pace

SLICE_S = 1e-3
MOST_SLICES = 16
FEW_SLICES = 4


@dataclass(frozen=True, slots=True)
class Scenario:
    """A learner and its actors; perhaps several equal groups of them."""

    paces: tuple[Pace, ...]
    """The pace of every actor, machine after machine."""
    learner: LearnerParts
    point: SetPoint
    max_lag: int
    trained_steps_per_version: int
    num_versions: int
    machines: Machines
    num_groups: int = 1
    """Learners with actors of their own, which average their gradients in every update."""

    @property
    def actors_per_node(self) -> int:
        return len(self.paces) // self.machines.num_nodes

    @property
    def num_slots(self) -> int:
        point = self.point
        return (
            point.warmup_unrolls
            + point.unrolls_per_version * (point.lag_target + 2)
            + len(self.paces)
        )


def num_slices(unroll_s: float, num_rows: int, has_own_core: bool) -> int:
    """Return the ticks of one unroll: about one per millisecond where cores are shared, at most one
    per row. Actors with a core of their own need fewer, to hear that they are late."""
    most = FEW_SLICES if has_own_core else MOST_SLICES
    return max(1, min(num_rows, most, math.ceil(unroll_s / SLICE_S)))
