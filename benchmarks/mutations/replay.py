"""Finds the mutations of an earlier result in a tree whose functions moved since."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.mutations.sites import Site

MOVED: Mapping[str, str] = json.loads(Path(__file__).with_name("moved.json").read_text())
"""What only a person can tell: the old id, and `function::operator#ordinal` where it is now."""
LONG_TEXT = 20
"""So many characters of code name a place, whatever the function is called now."""


class Mutation(NamedTuple):
    """What a site and an entry of a result have in common."""

    id: str
    function: str
    operator: str
    ordinal: int
    text: str

    @property
    def name(self) -> str:
        return self.id.split("::", 1)[1]

    @classmethod
    def from_site(cls, site: Site) -> Mutation:
        return cls(site.id, site.function, site.operator, site.ordinal, _text(site.before))

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Mutation:
        place = (entry["id"], entry["function"], entry["operator"], entry["ordinal"])
        return cls(*place, _text(entry["before"]))


def _text(code: str) -> str:
    return " ".join(code.split())


def find_again(
    old: Mutation, tree: Sequence[Mutation], moved: Mapping[str, str] = MOVED
) -> Mutation | None:
    """Return the mutation of this tree that is the old one, or None where that is not certain.

    The code of the mutated place decides before the names do: other places of a function come and
    go, and with them the ordinals.
    """
    if old.id in moved:
        return _only([new for new in tree if new.name == moved[old.id]])
    alike = [new for new in tree if new.operator == old.operator]
    named = [new for new in alike if new.function == old.function]
    at_home = [new for new in named if _file(new) == _file(old)]
    texts = [new for new in alike if new.text == old.text]
    short_name = old.function.rsplit(".", 1)[-1]
    choices = (
        [new for new in at_home if new.text == old.text and new.ordinal == old.ordinal],
        [new for new in at_home if new.text == old.text],
        [new for new in named if new.text == old.text and new.ordinal == old.ordinal],
        [new for new in texts if new.function.rsplit(".", 1)[-1] == short_name],
        texts if len(old.text) >= LONG_TEXT else [],
        [new for new in at_home if new.ordinal == old.ordinal],
        [new for new in named if new.ordinal == old.ordinal],
    )
    return next((found[0] for found in choices if len(found) == 1), None)


def _file(mutation: Mutation) -> str:
    return mutation.id.split("::", 1)[0]


def _only(found: Sequence[Mutation]) -> Mutation | None:
    return found[0] if len(found) == 1 else None


def replayed(sites: Sequence[Site], before: Sequence[Mapping[str, Any]]) -> list[Site]:
    """Return the sites of this tree that are the mutations of an earlier result."""
    by_id = {site.id: site for site in sites}
    tree = [Mutation.from_site(site) for site in sites]
    found = (find_again(Mutation.from_entry(entry), tree) for entry in before)
    return [by_id[id] for id in dict.fromkeys(new.id for new in found if new is not None)]


def newly_surviving(
    now: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return the mutations that were caught before and survive now, in whatever file they are."""
    tree = [Mutation.from_entry(entry) for entry in now]
    known = {entry["id"] for entry in before}
    caught = set()
    for entry in before:
        here = [new for new in tree if new.id == entry["id"] or new.id not in known]
        found = find_again(Mutation.from_entry(entry), here)
        caught |= {found.id} if entry["caught"] and found is not None else set()
    return [entry for entry in now if not entry["caught"] and entry["id"] in caught]
