"""What is simulated, as numbers: machines, actors, costs, network, set-points."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tianji.balance.set_point import SetPoint
from tianji.virtual.costs import LearnerParts
from tianji.virtual.network import NetworkModel
from tianji.virtual.roles import Pace

SLICE_S = 1e-3
MOST_SLICES = 16
FEW_SLICES = 4


@dataclass(frozen=True, slots=True)
class Scenario:
    """A learner on machine 0 and its actors, on one or several machines; perhaps several times."""

    paces: tuple[Pace, ...]
    """Of every actor; each machine has as many of them as the next, in this order."""
    learner: LearnerParts
    point: SetPoint
    max_lag: int
    trained_steps_per_version: int
    num_versions: int
    num_nodes: int = 1
    cores_per_node: int = 1
    num_groups: int = 1
    """Learners with actors of their own, which average their gradients in every update."""
    unroll_bytes: int = 0
    policy_bytes: int = 0
    forward_s: float = 0.0
    """A gateway's time to take one unroll and hand it on."""
    wake_s: float = 0.0
    """From a bell to the first instruction of who slept on it."""
    network: NetworkModel = field(default_factory=NetworkModel)

    @property
    def actors_per_node(self) -> int:
        return len(self.paces) // self.num_nodes

    @property
    def num_slots(self) -> int:
        point = self.point
        return (
            point.warmup_unrolls
            + point.unrolls_per_version * (point.lag_target + 2)
            + len(self.paces)
        )


def num_slices(unroll_s: float, num_rows: int, has_own_core: bool) -> int:
    """Looks around per unroll: about every millisecond where cores are shared, never more often
    than once a row. Actors with a core of their own only look whether they are to hurry."""
    most = FEW_SLICES if has_own_core else MOST_SLICES
    return max(1, min(num_rows, most, math.ceil(unroll_s / SLICE_S)))
