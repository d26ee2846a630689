"""`tianji presets`."""

from __future__ import annotations

from rich.table import Table

from tianji.cli.output import Outcome, people
from tianji.config.files import list_presets, load_preset


def presets() -> Outcome:
    """List the presets and what they learn."""
    found = [load_preset(name) for name in list_presets()]
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", overflow="fold")
    for preset in found:
        table.add_row(preset.name, preset.about)
    people().print(table)
    return Outcome({"presets": [{"name": p.name, "about": p.about} for p in found]})
