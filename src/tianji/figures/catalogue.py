"""All figures, one record each.

A new figure is a record in FIGURES (and its data in `data/NAME.json`); the command line lists,
checks, measures and draws it from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from tianji.errors import UsageError
from tianji.figures import equation, links, style, transports
from tianji.figures.apex import runs
from tianji.figures.apex.picture import draw_returns, draw_throughput
from tianji.figures.balance import ablation, scaling
from tianji.figures.balance.ablation import draw_ablation
from tianji.figures.balance.scaling_picture import draw_scaling
from tianji.figures.files import Data, describe, read_data, write_data
from tianji.figures.gathering.measure import measure_panels
from tianji.figures.gathering.picture import draw_panels, draw_tasks
from tianji.figures.groups import picture as groups_picture
from tianji.figures.groups import runs as group_runs
from tianji.figures.paper.numbers import LARGE_BALANCE_ACTORS, SMALL_BALANCE_ACTORS
from tianji.figures.paper.record import Comparison
from tianji.figures.paper.reported import REPORTED
from tianji.figures.timeline import picture as timeline
from tianji.figures.timeline import runs as traced_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Wish:
    """What the person asked a figure for.

    run: name or path of a run.
    from_s, for_s: the part of the run to show; None: chosen automatically.
    """

    run: str | None = None
    from_s: float | None = None
    for_s: float | None = None
    rerun: bool = False

    def options(self) -> set[str]:
        """Return the options that were given."""
        given = asdict(self).items()
        return {name for name, value in given if value is not None and value is not False}


class Drawn(NamedTuple):
    """A picture, and how it compares with the paper's; None: the paper has no such picture."""

    figure: Figure
    comparison: Comparison | None


@dataclass(frozen=True)
class DataFigure:
    """A figure drawn from data that comes with the package or is measured on this machine.

    measure: return the points, and whatever else the picture needs.
    data: the name of its data, where figures share them.
    if_missing: what to do as long as no data comes with the package.
    """

    options: ClassVar = frozenset({"rerun"})
    name: str
    about: str
    draw: Callable[[Data], Figure]
    measure: Callable[[], Data]
    data: str = ""
    if_missing: str = ""

    def make(self, wish: Wish, data_file: Path) -> Drawn:
        """Draw the figure; after a new measurement, write its data too."""
        if not wish.rerun:
            return self._draw(self.read())
        data = {**describe(self.name), **self.measure()}
        write_data(data, data_file)
        return self._draw(data)

    def read(self) -> Data:
        """Return the data that comes with the package."""
        try:
            return read_data(self.data or self.name)
        except UsageError as error:
            raise UsageError(f"{error} {self.if_missing}".strip()) from error

    def compare(self, data: Data) -> Comparison | None:
        """Return what the first paper reports beside what this data shows, if it has the figure."""
        reported = REPORTED.get(self.name)
        return reported.compare(data) if reported else None

    def _draw(self, data: Data) -> Drawn:
        figure, comparison = self.draw(data), self.compare(data)
        if comparison:
            notes = (f"Paper: {comparison.paper}", f"Ours: {comparison.ours}")
            style.add_notes(figure, notes)
        return Drawn(figure, comparison)


@dataclass(frozen=True)
class RunFigure:
    """A figure of a run of one's own; without a run, of those that come with the package."""

    options: ClassVar = frozenset({"run", "from_s", "for_s", "rerun"})
    kept: DataFigure
    draw_run: Callable[[str, float | None, float | None], Figure]

    @property
    def name(self) -> str:
        return self.kept.name

    @property
    def about(self) -> str:
        return self.kept.about

    def make(self, wish: Wish, data_file: Path) -> Drawn:
        if wish.run is not None and wish.rerun:
            raise UsageError("--run draws a run of yours and --rerun records new ones: choose one.")
        if wish.run is not None:
            return Drawn(self.draw_run(wish.run, wish.from_s, wish.for_s), None)
        if wish.from_s is not None or wish.for_s is not None:
            raise UsageError(
                "--from-s and --for-s choose a part of a run of yours: tianji figure "
                f"{self.name} --run RUN. Record one with tianji train PRESET --trace."
            )
        return self.kept.make(wish, data_file)


PaperFigure: TypeAlias = DataFigure | RunFigure


def _panels(name: str, about: str, title: str, draw: Any = draw_panels) -> DataFigure:
    return DataFigure(name, about, partial(draw, title=title), partial(measure_panels, name))


def _apex(name: str, about: str, draw: Callable[[Data], Figure]) -> DataFigure:
    advice = (
        "Runs on a machine with a GPU give it: python -m benchmarks.pong.dqn --out tianji-4.json "
        f"in a checkout, or `tianji figure {name} --rerun`, which takes 16 minutes."
    )
    return DataFigure(name, about, draw, runs.measure, data="tianji-4", if_missing=advice)


def _groups(name: str, about: str, draw: Callable[[Data], Figure]) -> DataFigure:
    return DataFigure(name, about, draw, group_runs.measure, data="tianji-groups")


def _links(name: str, about: str, draw: Callable[[Data], Figure]) -> DataFigure:
    return DataFigure(name, about, draw, partial(links.refuse_to_measure, name))


_ALL: tuple[PaperFigure, ...] = (
    DataFigure(
        "equation-1",
        "time to collect messages, predicted and measured (paper 1, equation 1)",
        equation.draw_equation,
        equation.measure,
    ),
    _panels(
        "nigt-1",
        "Humanoid, from equal times to a slow network, 10 actors (paper 2, figure 1)",
        "Humanoid: what unequal times and a slow network cost",
    ),
    _panels(
        "nigt-2",
        "Reacher and Hopper, equal and unequal times, 10 actors (beside paper 2, figure 2)",
        "Reacher and Hopper: what unequal times cost",
    ),
    _panels(
        "nigt-3",
        "Reacher, Hopper and Walker2d on a slow network, 10 actors (paper 2, figure 3)",
        "A slow network: few rounds, so each must count",
    ),
    _panels(
        "nigt-4",
        "equal times, 100 actors (paper 2, figure 4)",
        "A hundred actors with equal times",
    ),
    _panels(
        "nigt-5",
        "unequal times and free messages, 100 actors (paper 2, figure 5)",
        "A hundred actors with unequal times",
    ),
    _panels(
        "nigt-heterogeneous",
        "two tasks, one ten times slower: Malenia, AFedPG (our reconstruction), Rennala (paper 2)",
        "Two tasks with unequal actors: whose is learnt?",
        draw_tasks,
    ),
    RunFigure(
        DataFigure(
            "tianji-1",
            "what every role of a run did when, and its idle share (paper 1, figure 1)",
            timeline.draw_kept,
            traced_runs.measure,
        ),
        timeline.draw_run,
    ),
    _apex(
        "tianji-4a",
        "returns over time on Pong, TianJi's DQN against Ape-X (paper 1, figure 4 a)",
        draw_returns,
    ),
    _apex(
        "tianji-4b",
        "throughput and GPU busy share of both (paper 1, figure 4 b)",
        draw_throughput,
    ),
    _groups(
        "tianji-4c",
        "time to a return of 300 and throughput by groups (paper 1, figure 4 c)",
        groups_picture.draw_final_times,
    ),
    _groups(
        "tianji-4d",
        "returns over time and throughput by groups (paper 1, figure 4 d)",
        groups_picture.draw_returns,
    ),
    DataFigure(
        "tianji-5a",
        "throughput and collection time by message size, all transports (paper 1, figure 5 a)",
        transports.draw_sizes,
        transports.measure_sizes,
    ),
    DataFigure(
        "tianji-5b",
        "collection time by number of actors and sample time, 512 KB (paper 1, figure 5 b)",
        transports.draw_actors,
        transports.measure_actors,
    ),
    _links(
        "tianji-5c",
        "collection time by actors on four hosts, 512 KB (paper 1, figure 5 c)",
        links.draw_hosts,
    ),
    _links(
        "tianji-5d",
        "throughput between two hosts by message size (paper 1, figure 5 d)",
        links.draw_link,
    ),
    DataFigure(
        "tianji-6a",
        "production, reception and training by the number of actors (paper 1, figure 6 a)",
        partial(
            draw_scaling,
            title="More actors help until the learner has all it can use",
            paper_actors=SMALL_BALANCE_ACTORS,
        ),
        scaling.measure_small,
    ),
    DataFigure(
        "tianji-6b",
        "the same with more learner threads and a larger batch (paper 1, figure 6 b)",
        partial(
            draw_scaling,
            title="With more threads and a larger batch the balance moves on",
            paper_actors=LARGE_BALANCE_ACTORS,
        ),
        scaling.measure_large,
    ),
    _groups(
        "tianji-6c",
        "groups of learners with their actors, real and simulated (paper 1, figure 6 c)",
        groups_picture.draw_groups,
    ),
    DataFigure(
        "tianji-6d",
        "planned against arbitrary mapping, P = 1 against 1/8, PPO (paper 1, figure 6 d)",
        draw_ablation,
        ablation.measure_ablation,
    ),
)
FIGURES = {figure.name: figure for figure in _ALL}


def find_figure(name: str, wish: Wish) -> PaperFigure:
    """Return the figure of this name; refuse options that it does not take."""
    figure = FIGURES.get(name)
    if figure is None:
        raise UsageError(f"No figure '{name}'. There are: {', '.join(FIGURES)}.")
    for option in sorted(wish.options() - figure.options):
        takers = [other.name for other in _ALL if option in other.options]
        raise UsageError(
            f"{name} takes no --{option.replace('_', '-')}; that is for {', '.join(takers)}."
        )
    return figure
