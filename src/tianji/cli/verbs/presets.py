"""`tianji presets`."""

from __future__ import annotations

from tianji.cli.output import Outcome, people
from tianji.cli.pages.tables import fact_list
from tianji.config.files import Preset, list_presets, load_preset
from tianji.zoo.evidence import Row, evidence_of, expectation


def presets() -> Outcome:
    """List the presets, what they learn, and what they have reached."""
    found = [load_preset(name) for name in list_presets()]
    evidence = {preset.name: evidence_of(preset.name) for preset in found}
    table = fact_list({p.name: _about(p, evidence[p.name]) for p in found})
    table.columns[0].no_wrap, table.columns[0].overflow = False, "fold"
    people().print(table)
    return Outcome(
        {
            "presets": [
                {"name": p.name, "about": p.about, "evidence": evidence[p.name]} for p in found
            ]
        }
    )


def _about(preset: Preset, evidence: Row | None) -> str:
    return preset.about if evidence is None else f"{preset.about} {expectation(evidence)}"
