"""What our data shows in figures 6 (a), (b) and (d): the balance, and what a plan is worth."""

from __future__ import annotations

import statistics

from tianji.figures.balance.scaling_picture import equilibrium
from tianji.figures.files import Data
from tianji.figures.paper.record import times, where
from tianji.wording import counted, to_count, to_percent

TARGET = 475.0


def scaling(data: Data) -> str:
    """Say where the balance of figure 6 (a) or (b) is."""
    points = data["points"]
    best = max(points, key=lambda point: float(point["received"]))
    actors = equilibrium(points)
    is_last = actors >= max(point["actors"] for point in points[:-1])
    end = "; more actors hardly fit on the machine" if is_last else ""
    return (
        f"The balance is at {counted(actors, 'actor')}, and the highest rate is "
        f"{to_count(best['received'])} steps/s with {best['actors']}{end} ({where(data)}). "
        f"With {actors} the run reaches {_over_simulated(data, actors):.2f} of the simulated rate. "
        f"At every size {to_percent(_trained_share(data))} or more of what is produced is received "
        "and trained on as often as the ratio says."
    )


def _trained_share(data: Data) -> float:
    """Return the smallest share of production that is received and trained on, at most 1."""
    ratio = data["scaling"]["ratio"]
    shares = [
        min(point["received"], point["trained"] / ratio) / point["produced"]
        for point in data["points"]
    ]
    return float(min(1.0, *shares))


def _over_simulated(data: Data, actors: int) -> float:
    """Return what a run received over what the simulation says, with this many actors."""
    real, simulated = (
        next(point["received"] for point in data[kind] if point["actors"] == actors)
        for kind in ("points", "simulated")
    )
    return float(real / simulated)


def ablation(data: Data) -> str:
    """Say what the planned mapping and fresh batches of figure 6 (d) are worth."""
    planned, stale, arbitrary = (
        _time_to_target(data, *kind) for kind in (("planned", 1), ("planned", 8), ("arbitrary", 1))
    )
    if planned is None or stale is None or arbitrary is None:
        return f"Not every mapping reaches a mean return of {TARGET:g} ({where(data)})."
    return (
        f"To a mean return of {TARGET:g} the arbitrary mapping takes {arbitrary:.2f} s, "
        f"{times(arbitrary / planned)} as long as the planned one ({planned:.2f} s). Stale "
        f"batches take {times(stale / planned)} as long as fresh ones ({where(data)})."
    )


def _time_to_target(data: Data, mapping: str, pool_batches: int) -> float | None:
    """Return the median of all seeds; None if half of them never got there."""
    reached = []
    for run in data["points"]:
        if (run["mapping"], run["pool_batches"]) == (mapping, pool_batches):
            curve = zip(run["curve"]["seconds"], run["curve"]["return"], strict=True)
            reached.append(next((s for s, mean in curve if mean >= TARGET), None))
    known = sorted(seconds for seconds in reached if seconds is not None)
    if 2 * len(known) <= len(reached):
        return None
    return float(statistics.median([*known, *[float("inf")] * (len(reached) - len(known))]))
