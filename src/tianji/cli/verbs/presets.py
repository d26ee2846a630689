"""`tianji presets`."""

from __future__ import annotations

from tianji.cli.output import Outcome, people
from tianji.cli.pages.tables import fact_list
from tianji.config.presets import list_presets, load_preset


def presets() -> Outcome:
    """List the presets and what they learn."""
    found = [load_preset(name) for name in list_presets()]
    people().print(fact_list({preset.name: preset.about for preset in found}))
    return Outcome({"presets": [{"name": p.name, "about": p.about} for p in found]})
