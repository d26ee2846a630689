"""The ways of items (sent, received, used by an update) and of policies."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tianji.trace.spans import Kind, RoleSpans


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
