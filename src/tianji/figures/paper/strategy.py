"""What our data shows in figures 6 (a), (b) and (d): the balance, and what a plan is worth."""

from __future__ import annotations

from collections.abc import Sequence

from tianji.figures.balance.scaling_picture import equilibrium
from tianji.figures.estimates import estimate, sooner
from tianji.figures.files import Data
from tianji.figures.paper.record import where
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
        f"Of what is produced, {_share(data, 'received', 1.0)} is received, and "
        f"{_share(data, 'trained', data['scaling']['ratio'])} is trained on as often as the ratio "
        "says (one run for each point)."
    )


def _share(data: Data, rate: str, scale: float) -> str:
    """Say which share of production this rate is: the least and the most of all sizes. More than
    all is trained on while the learner works off what was made before."""
    shares = {point["actors"]: point[rate] / scale / point["produced"] for point in data["points"]}
    least, most = (find(shares, key=shares.__getitem__) for find in (min, max))
    ends = to_percent(shares[least]), to_percent(shares[most])
    if ends[0] == ends[1]:
        return f"{ends[0]} at every size"
    return f"{ends[0]} (with {counted(least, 'actor')}) to {ends[1]} (with {most})"


def _over_simulated(data: Data, actors: int) -> float:
    """Return what a run received over what the simulation says, with this many actors."""
    real, simulated = (
        next(point["received"] for point in data[kind] if point["actors"] == actors)
        for kind in ("points", "simulated")
    )
    return float(real / simulated)


def ablation(data: Data) -> str:
    """Say what the planned mapping and fresh batches of figure 6 (d) are worth."""
    fresh, stale, arbitrary = (
        _times_to_target(data, *kind) for kind in (("planned", 1), ("planned", 8), ("arbitrary", 1))
    )
    return (
        f"To a mean return of {TARGET:g} (interquartile means and 95 % intervals): the planned "
        f"mapping with fresh batches {_reached(fresh)}, with stale ones {_reached(stale)}; an "
        f"arbitrary mapping with fresh batches {_reached(arbitrary)}. Planned against arbitrary: "
        f"{sooner(fresh, arbitrary)}. Fresh against stale batches: {sooner(fresh, stale)} "
        f"({where(data)})."
    )


def _reached(times: Sequence[float | None]) -> str:
    found = estimate(times)
    return f"{found.text} ({found.reached} of {found.runs} runs reach it)"


def _times_to_target(data: Data, mapping: str, pool_batches: int) -> list[float | None]:
    """Return the time of each seed; None if it never got there."""
    curves = [
        zip(run["curve"]["seconds"], run["curve"]["return"], strict=True)
        for run in data["points"]
        if (run["mapping"], run["pool_batches"]) == (mapping, pool_batches)
    ]
    return [next((s for s, mean in curve if mean >= TARGET), None) for curve in curves]
