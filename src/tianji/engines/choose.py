"""Engines by name. Each is imported when it is needed, to keep the start short."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tianji.engines.interface import Engine, Observer
from tianji.engines.spec import RunSpec
from tianji.programs.program import Program

if TYPE_CHECKING:
    from tianji.costs.profile import Profile
    from tianji.engines.supervise.imbalance import Replan


def _inline(spec: RunSpec, program: Program, observer: Observer) -> Engine:
    from tianji.engines.inline import InlineEngine

    return InlineEngine(spec, program, observer)


def _local(
    spec: RunSpec, program: Program, observer: Observer, replan: Replan | None = None
) -> Engine:
    from tianji.engines.local import LocalEngine

    return LocalEngine(spec, program, observer, replan)


def _virtual(
    spec: RunSpec, program: Program, observer: Observer, profile: Profile | None = None
) -> Engine:
    from tianji.engines.virtual import VirtualEngine

    return VirtualEngine(spec, program, observer, profile)


ENGINES: dict[str, Callable[..., Engine]] = {
    "inline": _inline,
    "local": _local,
    "virtual": _virtual,
}
"""Called with the spec, the program and the observer; `local` also takes a replan, `virtual` a
profile."""
