"""`tianji presets`."""

from __future__ import annotations

from tianji.cli.output import Outcome, people
from tianji.cli.pages.tables import fact_list
from tianji.config.files import list_presets, load_preset


def presets() -> Outcome:
    """List the presets and what they learn."""
    found = [load_preset(name) for name in list_presets()]
    table = fact_list({preset.name: preset.about for preset in found})
    table.columns[0].no_wrap, table.columns[0].overflow = False, "fold"
    people().print(table)
    return Outcome({"presets": [{"name": p.name, "about": p.about} for p in found]})
