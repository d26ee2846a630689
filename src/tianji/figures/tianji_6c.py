"""Figure 6 (c) of the paper: groups of the balanced size of 6 (b), on the virtual clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tianji.figures.interface import Wish
from tianji.figures.look import QUIET, new_figure, numbered, quieten
from tianji.figures.points import Point, read_points
from tianji.figures.scaling import Scaling, simulate
from tianji.figures.scaling_picture import draw_rates, equilibrium

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = "groups of learners with their actors, simulated (paper 1, figure 6 c)"
OPTIONS = frozenset({"rerun"})
NAME = "tianji-6c"
SOURCE = "tianji-6b"
GROUPS = (1, 2, 4, 8, 16)


def read(_: Wish) -> dict[str, Any]:
    return read_points(NAME)


def rerun() -> dict[str, Any]:
    return simulate_groups(read_points(SOURCE))


def simulate_groups(single: Mapping[str, Any]) -> dict[str, Any]:
    """From the data of 6 (b): its profile, and the size at which it was in balance."""
    from tianji.costs.profile import Profile

    known = single["scaling"]
    scaling = Scaling(known["learner_threads"], known["batch_size"], known["updates_per_actor"])
    profile = Profile.model_validate(single["profile"])
    actors, cores = equilibrium(single["points"]), single["machine"]["cores"]
    points = [
        {"groups": count, **simulate(scaling, profile, actors, cores, count)} for count in GROUPS
    ]
    return {
        **{key: single[key] for key in ("commit", "machine", "versions", "scaling")},
        "figure": NAME,
        "command": f"tianji figure {NAME} --rerun",
        "points": points,
    }


def draw(data: Mapping[str, Any]) -> Figure:
    points: Sequence[Point] = data["points"]
    figure = new_figure(7.2, 5.4)
    axes = figure.subplots()
    groups = [point["groups"] for point in points]
    first = points[0]["received"] / 1e3 / groups[0]
    ideal = [first * count for count in groups]
    axes.plot(groups, ideal, color=QUIET, linestyle=":", linewidth=1.2, label="in proportion")
    draw_rates(axes, points, data["scaling"]["ratio"], "groups")
    quieten(axes)
    axes.set_xlim(0, groups[-1] * 1.04)
    axes.set_ylim(0, ideal[-1] * 1.08)
    axes.set_xticks(groups, [f"{count}\n({count * points[0]['actors']})" for count in groups])
    axes.set_xlabel("groups (actors in all)")
    axes.set_ylabel("thousand environment steps per second")
    axes.set_title(_subtitle(data), fontsize=9, color=QUIET, loc="left", pad=8)
    figure.suptitle(
        "Groups carry on where one learner ends", fontsize=13, fontweight="bold", x=0.01, ha="left"
    )
    axes.legend(fontsize=9, frameon=False)
    return figure


def _subtitle(data: Mapping[str, Any]) -> str:
    scaling, machine = data["scaling"], data["machine"]
    threads = numbered(scaling["learner_threads"], "learner thread")
    actors = numbered(data["points"][0]["actors"], "actor")
    return f"simulated, with costs measured on {machine['cpu']}; a group is {threads} and {actors}"
