"""The idle share of every role.

Within a process, the time between two spans (loop, gauges, reports) belongs to the role of the
first. A role is busy during its own spans and the time that belongs to them; it is idle while it
sleeps and while another role of its process works. Busy and idle time add up to the time from the
first span of the process to its last, without start-up: time begins with the first unroll of any
actor.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tianji.trace.spans import IDLE, Kind, RoleSpans


@dataclass(frozen=True, slots=True)
class Share:
    """The time of one role, summed over its processes if it was restarted."""

    busy_s: float
    idle_s: float

    @property
    def idle_share(self) -> float:
        return self.idle_s / max(1e-9, self.busy_s + self.idle_s)


def idle_shares(roles: Sequence[RoleSpans]) -> dict[str, Share]:
    """Return the shares by role name."""
    begun = [role.start_ns[role.kind == Kind.BEGIN] for role in roles]
    begun_ns = min((int(starts.min()) for starts in begun if len(starts)), default=0)
    processes: dict[int, list[RoleSpans]] = defaultdict(list)
    for role in roles:
        processes[role.pid].append(role)
    shares: dict[str, Share] = {}
    for members in processes.values():
        for name, share in _shares_of_process(members, begun_ns).items():
            before = shares.get(name, Share(0.0, 0.0))
            shares[name] = Share(before.busy_s + share.busy_s, before.idle_s + share.idle_s)
    return shares


def _shares_of_process(members: Sequence[RoleSpans], begun_ns: int) -> dict[str, Share]:
    kept = [role.spans() & (role.end_ns > begun_ns) for role in members]
    pairs = list(zip(members, kept, strict=True))
    start_ns = np.concatenate([role.start_ns[keep] for role, keep in pairs]).clip(begun_ns)
    end_ns = np.concatenate([role.end_ns[keep] for role, keep in pairs])
    kind = np.concatenate([role.kind[keep] for role, keep in pairs])
    owner = np.repeat(np.arange(len(members)), [keep.sum() for keep in kept])
    if not len(start_ns):
        return {}
    order = np.argsort(start_ns, kind="stable")
    start_ns, end_ns, kind, owner = start_ns[order], end_ns[order], kind[order], owner[order]
    until_ns = np.append(
        start_ns[1:], end_ns[-1]
    )  # the end of a span with the time that belongs to it
    asleep_ns = np.where(np.isin(kind, IDLE), end_ns - start_ns, 0)
    busy_ns = until_ns - start_ns - asleep_ns
    lived_ns = int(end_ns[-1] - start_ns[0])
    shares = {}
    for index, role in enumerate(members):
        busy = int(busy_ns[owner == index].sum())
        shares[role.role] = Share(busy / 1e9, (lived_ns - busy) / 1e9)
    return shares
