"""The program of one group: the one that the style of the run makes."""

from __future__ import annotations

from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.programs.program import Program
from tianji.programs.registry import find_style


def program_for(config: RunConfig, plan: RunPlan) -> Program:
    """Return the program of a run with one group: its roles, where they live, and the wires."""
    return find_style(config.style).program(config, plan)
