"""What spans tell: the ways of items and of policies, and the idle share of every role.

Within a process, the time between two spans (loop, gauges, reports) belongs to the role of the
first. A role is busy during its own spans and the time that belongs to them; it is idle while it
sleeps and while another role of its process works. Busy and idle time add up to the time from the
first span of the process to its last, without start-up: time begins with the first unroll of any
actor.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tianji.trace.spans import IDLE, Kind, RoleSpans


class Place(NamedTuple):
    """A moment within a span of a role."""

    role: int
    """Index of the role."""
    at_ns: int


class Flow(NamedTuple):
    """An arrow over two or three places."""

    name: str
    """`item`, or `policy`."""
    subject: int
    places: tuple[Place, ...]


_INSIDE_NS = 1  # an arrow must touch its span within, not on the edge


def item_flows(roles: Sequence[RoleSpans]) -> Iterator[Flow]:
    """Yield send, receipt and first update of every item; for replay, its entry into the store.

    An item whose receiver died is made again under the same name. A receipt therefore belongs to
    the last send before it, and the item's use lies before its next receipt.
    """
    sent = _moments(roles, Kind.SEND)
    stored = _moments(roles, Kind.STORED)
    used = _moments(roles, Kind.USED)
    for item, receipts in _moments(roles, Kind.RECEIVE, at_end=True).items():
        for number, receipt in enumerate(receipts):
            start = _last_before(sent.get(item, []), receipt.at_ns)
            if start is None:
                continue
            following = receipts[number + 1 :]
            until_ns = following[0].at_ns if following else None
            end = _first_within(used.get(item, []), receipt.at_ns, until_ns)
            end = end or _first_within(stored.get(item, []), receipt.at_ns, until_ns)
            places = (start, receipt) if end is None else (start, receipt, end)
            yield Flow("item", item, places)


def policy_flows(roles: Sequence[RoleSpans]) -> Iterator[Flow]:
    """Yield an arrow from a publication to every pick-up of it."""
    picked = _moments(roles, Kind.PICK_UP, at_end=True)
    for version, posts in _moments(roles, Kind.PUBLISH).items():
        for place in picked.get(version, []):
            start = _last_before(posts, place.at_ns)
            if start is not None:
                yield Flow("policy", version, (start, place))


def _moments(
    roles: Sequence[RoleSpans], kind: Kind, at_end: bool = False
) -> dict[int, list[Place]]:
    """Return the moments of all records of a kind, by subject, earliest first."""
    found: dict[int, list[Place]] = defaultdict(list)
    for index, role in enumerate(roles):
        chosen = role.kind == kind
        times = role.end_ns - _INSIDE_NS if at_end else role.start_ns + _INSIDE_NS
        pairs = zip(role.subject[chosen].tolist(), times[chosen].tolist(), strict=True)
        for subject, at_ns in pairs:
            found[subject].append(Place(index, at_ns))
    for places in found.values():
        places.sort(key=lambda place: place.at_ns)
    return found


def _last_before(places: Sequence[Place], at_ns: int) -> Place | None:
    count = bisect_left([place.at_ns for place in places], at_ns)
    return places[count - 1] if count else None


def _first_within(places: Sequence[Place], from_ns: int, until_ns: int | None) -> Place | None:
    for place in places:
        if place.at_ns >= from_ns and (until_ns is None or place.at_ns < until_ns):
            return place
    return None


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
    threads: dict[tuple[int, int], list[RoleSpans]] = defaultdict(list)
    for role in roles:
        threads[role.pid, role.thread].append(role)
    shares: dict[str, Share] = {}
    for members in threads.values():
        for name, share in _shares_of_thread(members, begun_ns).items():
            before = shares.get(name, Share(0.0, 0.0))
            shares[name] = Share(before.busy_s + share.busy_s, before.idle_s + share.idle_s)
    return shares


def _shares_of_thread(members: Sequence[RoleSpans], begun_ns: int) -> dict[str, Share]:
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
