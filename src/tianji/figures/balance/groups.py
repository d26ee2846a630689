"""Figure 6 (c): groups of the balanced size of 6 (b), on the virtual clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tianji.figures import style
from tianji.figures.balance.scaling import Scaling, simulate
from tianji.figures.balance.scaling_picture import (
    THOUSAND_STEPS,
    draw_rates,
    equilibrium,
)
from tianji.figures.files import Data, Point, read_data
from tianji.wording import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCE = "tianji-6b"
GROUPS = (1, 2, 4, 8, 16)


def simulate_groups() -> Data:
    """Simulate groups with the profile of 6 (b), at the size at which it was in balance."""
    from tianji.costs.profile import Profile

    single = read_data(SOURCE)
    known = single["scaling"]
    scaling = Scaling(known["learner_threads"], known["batch_size"], known["updates_per_actor"])
    profile = Profile.model_validate(single["profile"])
    actors, cores = equilibrium(single["points"]), single["machine"]["cores"]
    points = [
        {"groups": count, **simulate(scaling, profile, actors, cores, count)} for count in GROUPS
    ]
    measured = {key: single[key] for key in ("commit", "machine", "versions", "scaling")}
    return {**measured, "points": points}


def draw_groups(data: Data) -> Figure:
    points: Sequence[Point] = data["points"]
    figure = style.new_figure(7.2, 5.4, "Groups carry on where one learner ends")
    axes = figure.subplots()
    groups = [point["groups"] for point in points]
    first = points[0]["received"] / 1e3 / groups[0]
    ideal = [first * count for count in groups]
    axes.plot(groups, ideal, color=style.QUIET, linestyle=":", linewidth=1.2, label="in proportion")
    draw_rates(axes, points, data["scaling"]["ratio"], "groups")
    style.quieten(axes)
    axes.set_xlim(0, groups[-1] * 1.04)
    axes.set_ylim(0, ideal[-1] * 1.08)
    axes.set_xticks(groups, [f"{count}\n({count * points[0]['actors']})" for count in groups])
    axes.set_xlabel("groups (actors in all)")
    axes.set_ylabel(THOUSAND_STEPS)
    threads = counted(data["scaling"]["learner_threads"], "learner thread")
    actors, cpu = counted(points[0]["actors"], "actor"), data["machine"]["cpu"]
    style.subtitle(
        axes, f"simulated, with costs measured on {cpu}; a group is {threads} and {actors}"
    )
    axes.legend(fontsize=9, frameon=False)
    return figure
