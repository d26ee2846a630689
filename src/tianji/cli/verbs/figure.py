"""`tianji figure [NAME]`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tianji.cli.output import Outcome, people
from tianji.cli.pages.tables import fact_list
from tianji.errors import UsageError
from tianji.run_folder.paths import find_run


def figure(
    name: str | None = None,
    /,
    *,
    run: str | None = None,
    output: Path | None = None,
    rerun: Annotated[bool, Parameter(negative="")] = False,
    from_s: float | None = None,
    for_s: float | None = None,
) -> Outcome:
    """Draw a figure of the papers as PNG and print its path; without a name, list them.

    Parameters
    ----------
    name
        The figure, such as tianji-1 or nigt-1.
    run
        For tianji-1: a run of yours, by its name under runs/ or the path of its folder.
    output
        The file to write; default: NAME.png in the run folder or in the current folder.
    rerun
        Measure our part again on this machine, and also write the data to NAME.json.
    from_s
        For tianji-1: start of the shown part of the trace, in seconds; default: automatic.
    for_s
        For tianji-1: length of the shown part, in seconds.
    """
    from tianji.figures.catalogue import Wish, find_figure
    from tianji.figures.style import save

    if name is None:
        return _list()
    wish = Wish(run, from_s, for_s, rerun)
    found = find_figure(name, wish)
    path = output or (find_run(run) if run else Path()) / f"{name}.png"
    drawn = found.make(wish, data_file=path.with_suffix(".json"))
    try:
        save(drawn.figure, path)
    except (OSError, ValueError) as error:  # ValueError: a format that matplotlib does not know
        raise UsageError(f"Cannot write the figure '{path}': {error}") from error
    sys.stdout.write(f"{path}\n")
    comparison = drawn.comparison._asdict() if drawn.comparison else {}
    people().print(fact_list(comparison))
    return Outcome({"figure": name, "path": str(path), **comparison})


def _list() -> Outcome:
    from tianji.figures.catalogue import FIGURES

    people().print(fact_list({name: found.about for name, found in FIGURES.items()}))
    return Outcome({"figures": [{"name": n, "about": f.about} for n, f in FIGURES.items()]})
