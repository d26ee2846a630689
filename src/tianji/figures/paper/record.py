"""What the paper reports for a figure beside what our data shows: the record, and its texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tianji.figures.files import Data

NO_NUMBERS = "Its text gives no numbers."


class Comparison(NamedTuple):
    """A figure of the paper and ours, in words; `difference` says why they are not the same."""

    paper: str
    ours: str
    difference: str


@dataclass(frozen=True, slots=True)
class Reported:
    """What the paper's text says about one of its figures.

    ours: says what our data shows, so that it stays true when the data is measured again.
    difference: how our setting differs from the paper's.
    """

    paper: str
    ours: Callable[[Data], str]
    difference: str

    def compare(self, data: Data) -> Comparison:
        return Comparison(self.paper, self.ours(data), self.difference)


def where(data: Data) -> str:
    """Return the machine of some data, such as `AMD EPYC, 2 cores`, and whether it was busy."""
    machine = data["machine"]
    text = f"{machine['cpu']}, {machine['cores']} cores"
    load = machine.get("load_average", [0.0])[0]
    return f"{text}, a load average of {load:.1f} before" if load > machine["cores"] else text


def times(ratio: float) -> str:
    """Return a ratio as people write it: `0.58 times`, `3.0 times`, `24 times`."""
    digits = 2 if ratio < 1 else 1 if ratio < 10 else 0
    return f"{ratio:,.{digits}f} times"
