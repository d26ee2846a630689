"""A proposal for several hosts: groups, their shares and places, and what they would bring."""

from __future__ import annotations

from dataclasses import dataclass

from tianji.config.run import Combine
from tianji.errors import UsageError
from tianji.planning.solve.demand import RunMemory
from tianji.virtual.simulate import Simulated


@dataclass(frozen=True, slots=True)
class Asked:
    """What the person has decided; None: the proposal decides.

    hosts_per_group: hosts of each group: that of its learner, and those with more actors.
    """

    num_hosts: int
    num_groups: int | None = None
    combine: Combine | None = None
    hosts_per_group: int = 1

    def check(self) -> None:
        """Raise UsageError where groups do not fill the hosts."""
        num_hosts, each = self.num_hosts, self.hosts_per_group
        if num_hosts % each:
            raise UsageError(
                f"--nodes {num_hosts} --actor-hosts {each - 1}: each group has {each} hosts. "
                f"Use a multiple of {each} hosts."
            )
        room = num_hosts // each
        if self.num_groups is not None and self.num_groups < room:
            raise UsageError(
                f"--nodes {num_hosts} --num-groups {self.num_groups}: "
                f"{num_hosts - each * self.num_groups} of the hosts would be idle. Use --nodes "
                f"{each * self.num_groups}, or at least {room} groups."
            )
        if each > 1 and self.num_groups is not None and self.num_groups > room:
            raise UsageError(
                f"--nodes {num_hosts} --num-groups {self.num_groups} --actor-hosts {each - 1}: "
                f"groups with hosts of their own for actors do not share them. Use --nodes "
                f"{each * self.num_groups}."
            )


@dataclass(frozen=True, slots=True)
class GroupShares:
    """The shares of one group, where each host has so many groups, or each group so many
    hosts.

    cores: of one group on each host.
    """

    groups_per_host: int
    hosts_per_group: int
    cores: int
    num_actors: int
    envs_per_actor: int
    learner_threads: int
    actor_threads: int
    memory: RunMemory

    @property
    def memory_per_host(self) -> int:
        """Return the bytes on a host with a learner, for all groups there."""
        elsewhere = self.memory.actors * (self.hosts_per_group - 1) // self.hosts_per_group
        return self.groups_per_host * (self.memory.total - elsewhere)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What so many hosts would bring; share: of what they would if rates grew with them."""

    num_hosts: int
    num_groups: int
    simulated: Simulated
    share: float


@dataclass(frozen=True, slots=True)
class Proposal:
    """Groups on hosts, and what they would bring.

    scale: predictions for 1, 2, 4 ... hosts, and for all.
    by_combine: received steps per second of all hosts, for each way to combine that can run.
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
        """Return the prediction for all hosts."""
        return self.scale[-1]
