"""Other systems, measured once for this project (`data/peers.json`).

They stand beside our figures only where ours come from the same kind of machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tianji.figures.files import Data, Point, read_data


class Trained(NamedTuple):
    """How a system learnt CartPole: the seconds to a mean return of 300.

    None: not reached in `limit_s` seconds.
    """

    system: str
    algorithm: str
    settings: str
    runs: int
    seconds: float | None
    limit_s: float | None
    steps_per_s: float

    @property
    def how_long(self) -> str:
        return f"not in {self.limit_s:g} s" if self.seconds is None else f"{self.seconds:g} s"


def channels_beside(data: Data) -> list[Point]:
    """Return the points of other systems' channels, if the data comes from such a machine."""
    peers = read_data("peers")
    return list(peers["points"]) if _is_alike(peers["machine"], data["machine"]) else []


def trained_beside(data: Data) -> list[Trained]:
    """Return how other systems learnt CartPole, if the data comes from such a machine."""
    peers = read_data("peers")
    return list_trained() if _is_alike(peers["machine"], data["machine"]) else []


def list_trained() -> list[Trained]:
    return [
        Trained(
            row["system"],
            row["algorithm"],
            row["settings"],
            row["runs"],
            row["seconds_to_300"][1] if row["seconds_to_300"] else None,
            row["limit_s"],
            row["steps_per_s"],
        )
        for row in read_data("peers")["training"]
    ]


def fastest(rows: Sequence[Trained]) -> list[Trained]:
    """Return the fastest setting of each system that learns by PPO."""
    by_system: dict[str, Trained] = {}
    for row in sorted(rows, key=lambda row: row.seconds or math.inf):
        if row.algorithm.endswith("PPO"):
            by_system.setdefault(row.system, row)
    return list(by_system.values())


def _is_alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one[name] == other[name] for name in ("cpu", "cores"))
