"""`tianji zoo [PRESET ...]`."""

from __future__ import annotations

from tianji.cli.output import Outcome, people
from tianji.cli.pages.zoo import WIDTH, zoo_page
from tianji.zoo.evidence import Zoo, read_zoo, rows_of


def zoo(*presets: str) -> Outcome:
    """Show what the presets have reached, beside Stable-Baselines3 at equal steps.

    Parameters
    ----------
    presets
        The presets to show; without a name, all that were measured.
    """
    found: Zoo = read_zoo()
    if presets:
        found = {**found, "rows": rows_of(presets)}
    console = people()
    console.width = max(console.width, WIDTH)
    console.print(zoo_page(found))
    return Outcome(dict(found))
