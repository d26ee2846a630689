"""What it costs to combine groups: time of the learners, and bytes between hosts.

`gradients`: all learners wait for each other and until their gradients are added up: on one host in
shared memory, between hosts by a ring.
`average`, `gossip`: nobody waits. Groups here are equally fast, and `combine_max_age` is left out.
Mixing is work of the learner. On one host, parameters are in shared memory. Between hosts they
cross through the head, which asks every group for them in turn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist

from tianji.channels.peers.interface import adds_slices
from tianji.config.run import Combine
from tianji.virtual.clock import NetworkModel

WAKE_S = 60e-6
"""Time in which learners of one host that wait for the last one are woken."""
_SUM_BYTES_PER_S = 5e9
"""Speed at which parts of a sum are written, read and added, in memory that all cores share."""
CROWDED_S = 1e-3
"""More for each meeting, and each step of a ring, where learners share their cores with actors:
they wait for a turn. Of runs with two groups on two cores, each with an actor that never waits."""
EXCHANGE_S = 0.05
"""The head asks each group for new parameters this often (engines/agents/remote.py)."""
CALL_S = 1e-3
"""Processor time of the head for one question to a group and its answer."""
# Posting and mixing: Python, and copies in memory at speeds that other cores leave.
_POST_S, _PEER_S = 12e-6, 3.5e-6
_POST_BYTES_PER_S, _PEER_BYTES_PER_S = 5e9, 6.5e9
_QUARTILES_OF_SIGMA = 1.349
"""The interquartile range of a normal distribution, over its standard deviation."""


@dataclass(frozen=True, slots=True)
class Combining:
    """The costs of combining groups, for each of them.

    update_wait_s: time in which a learner waits in each update, after all have come.
    version_wait_s: the same before each version.
    mix_s: work of the learner in each update: its share of posting and mixing.
    has_meetings: learners wait for each other.
    """

    update_wait_s: float = 0.0
    version_wait_s: float = 0.0
    mix_s: float = 0.0
    has_meetings: bool = False


ALONE = Combining()


@dataclass(frozen=True, slots=True)
class Together:
    """Groups that train one policy.

    groups_away: groups on other hosts than the first, where the head is.
    is_crowded: learners share their cores with others that are at work.
    nbytes: size of the parameters, and of a gradient.
    """

    num_groups: int
    groups_away: int
    combine: Combine
    combine_every: int
    nbytes: int
    network: NetworkModel
    is_crowded: bool = False

    @property
    def is_on_hosts(self) -> bool:
        """Return whether groups exchange anything between hosts."""
        return self.num_groups > 1 and self.groups_away > 0

    @property
    def num_peers(self) -> int:
        """Return the groups whose parameters a group mixes with its own."""
        return {"average": self.num_groups - 1, "gossip": 1, "gradients": 0}[self.combine]

    def costs(self, update_s: float, version_s: float, noise: float) -> Combining:
        """Return the costs of these groups.

        update_s, version_s: duration of one update and of one version in the learner alone.
        noise: half of the interquartile range of version_s, over its median.
        """
        if self.num_groups == 1:
            return ALONE
        if self.combine == "gradients":
            return self._gradients(version_s, noise)
        return Combining(mix_s=self._mix_s(update_s))

    def _gradients(self, version_s: float, noise: float) -> Combining:
        deviation_s = version_s * 2 * noise / _QUARTILES_OF_SIGMA
        return Combining(
            update_wait_s=self._sum_s(self.nbytes),
            version_wait_s=self._sum_s(0) + deviation_s * slowest_of(self.num_groups),
            has_meetings=True,
        )

    def _sum_s(self, nbytes: int) -> float:
        """Return the time of a reduction, after all learners have come."""
        crowded_s = CROWDED_S if self.is_crowded else 0.0
        if self.is_on_hosts:
            ring = replace(self.network, latency_s=self.network.latency_s + crowded_s)
            return ring.all_reduce_s(nbytes, self.num_groups)
        in_slices = adds_slices(nbytes, self.num_groups)
        meetings, reads = (2, 2) if in_slices else (1, self.num_groups)
        return meetings * (WAKE_S + crowded_s) + (1 + reads) * nbytes / _SUM_BYTES_PER_S

    def _mix_s(self, update_s: float) -> float:
        """Return the work for mixing, for each update. A post of another host is mixed once."""
        fresh = float(self.num_peers)
        if self.is_on_hosts:
            between_s = self.combine_every * update_s
            fresh *= min(1.0, between_s / self.exchange_period_s())
        copy_s = _POST_S + self.nbytes / _POST_BYTES_PER_S
        read_s = _PEER_S + self.nbytes / _PEER_BYTES_PER_S
        return (copy_s + fresh * read_s) / self.combine_every

    def exchange_period_s(self) -> float:
        """Return the time between two exchanges of a group's parameters through the head: limited
        by the head's own pause, by its processor, or by the link of its host."""
        posts = max(self._posts_in, self._posts_out)
        link_s = posts * self.nbytes / self.network.bytes_per_s
        return max(EXCHANGE_S, self.num_groups * CALL_S, link_s) + 2 * self.network.latency_s

    @property
    def _posts_in(self) -> int:
        """Return the posts that enter the head's host in one exchange with all groups."""
        return self.groups_away

    @property
    def _posts_out(self) -> int:
        return self.groups_away * self.num_peers

    def bytes_per_s(self, updates_per_s: float, learner_hosts: int) -> dict[str, float]:
        """Return what crosses between hosts to combine the groups, by kind.

        updates_per_s: of one group.
        """
        if not self.is_on_hosts:
            return {}
        if self.combine == "gradients":
            # Groups of one host are neighbours in the ring, so that it leaves each host once.
            part = 2 * (self.num_groups - 1) / self.num_groups
            return {"gradients": updates_per_s * learner_hosts * part * self.nbytes}
        period_s = self.mix_period_s(updates_per_s)
        return {"parameters": (self._posts_in + self._posts_out) * self.nbytes / period_s}

    def mix_period_s(self, updates_per_s: float) -> float:
        """Return the time between two mixes with news of the other groups."""
        own_s = self.combine_every / updates_per_s
        return max(own_s, self.exchange_period_s()) if self.is_on_hosts else own_s

    def link_share(self, updates_per_s: float) -> float:
        """Return how busy combining keeps the busiest link, which is that of the head."""
        if not self.is_on_hosts:
            return 0.0
        if self.combine == "gradients":
            part = 2 * (self.num_groups - 1) / self.num_groups
            return updates_per_s * part * self.nbytes / self.network.bytes_per_s
        posts = max(self._posts_in, self._posts_out)
        sent_s = posts * self.nbytes / self.network.bytes_per_s
        return sent_s / self.mix_period_s(updates_per_s)


def slowest_of(count: int) -> float:
    """Return how many standard deviations the slowest of so many is behind the mean (Blom 1958)."""
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25)) if count > 1 else 0.0
