"""What a figure is: a module of this room, named as its figure with an underscore for the dash.

    ABOUT = "one line for the list of figures"
    OPTIONS = frozenset({"run"})             which options of `tianji figure` it understands
    def read(wish: Wish) -> Data: ...        from the package's data, or from a run
    def draw(data: Data) -> Figure: ...      data in, picture out: nothing is read or measured here
    def rerun() -> Data: ...                 only where OPTIONS has "rerun": measure here and now

A new figure is a new file here (and its data in `data/`); nothing else needs to know of it.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from tianji.errors import UsageError

_MODULE = re.compile(r"(tianji|nigt)_(\d+[a-z]?|heterogeneous)")


@dataclass(frozen=True, slots=True)
class Wish:
    """What the person asked a figure for."""

    run: str | None = None
    """Name or path of a run."""
    from_s: float | None = None
    for_s: float | None = None
    """The part of the run to show; None: chosen automatically."""
    rerun: bool = False

    def options(self) -> set[str]:
        """The options that were given."""
        given = {"run": self.run, "from_s": self.from_s, "for_s": self.for_s}
        named = {name for name, value in given.items() if value is not None}
        return named | ({"rerun"} if self.rerun else set())


def list_figures() -> list[str]:
    """The names of all figures."""
    found = pkgutil.iter_modules([str(Path(__file__).parent)])
    return sorted(m.name.replace("_", "-") for m in found if _MODULE.fullmatch(m.name))


def load_figure(name: str) -> ModuleType:
    """The module of a figure."""
    if name not in list_figures():
        raise UsageError(f"No figure '{name}'. There are: {', '.join(list_figures())}.")
    return importlib.import_module(f"tianji.figures.{name.replace('-', '_')}")


def check_options(name: str, figure: ModuleType, wish: Wish) -> None:
    """Refuse what a figure does not understand, and ask for what it cannot do without."""
    for option in sorted(wish.options() - figure.OPTIONS):
        takers = [n for n in list_figures() if option in load_figure(n).OPTIONS]
        raise UsageError(
            f"{name} takes no --{option.replace('_', '-')}; that is for {', '.join(takers)}."
        )
    if "run" in figure.OPTIONS and wish.run is None:
        raise UsageError(
            f"{name} shows a run of your own: tianji figure {name} --run RUN. The run must have "
            "been recorded: tianji train PRESET --trace."
        )
