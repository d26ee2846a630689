"""A proposal for several machines: groups, their shares and places, and what they would bring."""

from __future__ import annotations

from dataclasses import dataclass

from tianji.config.run import Combine
from tianji.planning.solve.demand import RunMemory
from tianji.virtual.simulate import Simulated


@dataclass(frozen=True, slots=True)
class Asked:
    """What the person has decided; None: the proposal decides."""

    num_hosts: int
    num_groups: int | None = None
    combine: Combine | None = None


@dataclass(frozen=True, slots=True)
class GroupShares:
    """The shares of one group, where each machine has so many groups."""

    groups_per_host: int
    cores: int
    num_actors: int
    envs_per_actor: int
    learner_threads: int
    actor_threads: int
    memory: RunMemory


@dataclass(frozen=True, slots=True)
class Forecast:
    """What so many machines would bring; share: of what they would if rates grew with them."""

    num_hosts: int
    num_groups: int
    simulated: Simulated
    share: float


@dataclass(frozen=True, slots=True)
class Proposal:
    """Groups on machines, and what they would bring.

    scale: predictions for 1, 2, 4 ... machines, and for all.
    by_combine: received steps per second of all machines, for each way to combine that can run.
    """

    shares: GroupShares
    num_groups: int
    combine: Combine
    combine_every: int
    scale: tuple[Forecast, ...]
    by_combine: dict[Combine, float]
    reasons: tuple[str, ...]

    @property
    def whole(self) -> Forecast:
        """Return the prediction for all machines."""
        return self.scale[-1]
