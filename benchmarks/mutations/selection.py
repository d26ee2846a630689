"""Chooses the mutations: spread over rooms and operators, the same for the same seed.

A site's rank is a hash of the seed and the site's identity. A change of one function therefore
leaves the choice in other functions mostly as it was.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from benchmarks.code_lines import room_of
from benchmarks.mutations.sites import Site


def by_room(sites: Iterable[Site]) -> dict[str, list[Site]]:
    rooms: dict[str, list[Site]] = defaultdict(list)
    for site in sites:
        rooms[room_of(site.file)].append(site)
    return dict(sorted(rooms.items()))


def shares(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """Split `count` over the rooms: one each, the rest in proportion to their sites."""
    given = {room: 1 for room, size in sizes.items() if size}
    total = sum(sizes.values())
    while sum(given.values()) < min(count, total):
        # The room that is furthest below its share gets the next one.
        room = max(
            (room for room in given if given[room] < sizes[room]),
            key=lambda room: (sizes[room] * count / total - given[room], room),
        )
        given[room] += 1
    return given


def select(sites: Iterable[Site], count: int, seed: int) -> list[Site]:
    rooms = by_room(sites)
    given = shares({room: len(found) for room, found in rooms.items()}, count)
    return [
        site
        for room, number in given.items()
        for site in _in_turns(rooms[room], seed, room)[:number]
    ]


def _in_turns(sites: Sequence[Site], seed: int, room: str) -> list[Site]:
    """One site of each operator in turn, so that no common operator takes all places."""
    operators: dict[str, list[Site]] = defaultdict(list)
    for site in sorted(sites, key=lambda site: _rank(seed, site.id)):
        operators[site.operator].append(site)
    order = sorted(operators, key=lambda operator: _rank(seed, f"{room}:{operator}"))
    turns = zip_longest(*(operators[operator] for operator in order))
    return [site for turn in turns for site in turn if site is not None]


def _rank(seed: int, text: str) -> str:
    return hashlib.sha256(f"{seed}:{text}".encode()).hexdigest()
