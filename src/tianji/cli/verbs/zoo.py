"""`tianji zoo`."""

from __future__ import annotations

from tianji.cli.output import Outcome, people
from tianji.cli.pages.zoo import WIDTH, zoo_page
from tianji.zoo.evidence import read_zoo


def zoo() -> Outcome:
    """Show what the presets have reached, beside Stable-Baselines3 at equal steps."""
    found = read_zoo()
    console = people()
    console.width = max(console.width, WIDTH)
    console.print(zoo_page(found))
    return Outcome(dict(found))
