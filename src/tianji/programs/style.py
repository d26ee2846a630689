"""A style: an architecture of distributed training, as settings and a program.

    style = find_style("impala")
    values = style.settings(values, given)         # when the settings of a run are read
    program = style.program(config, plan)          # when an engine starts it

Everything else is the same for all styles: environments, networks, optimisers, channels, engines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tianji.algorithms.interface import Cadence, QueueCadence, ReplayCadence
from tianji.algorithms.registry import load_algorithm
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.config.schema import (
    ALGORITHM,
    CHOOSE,
    AlgorithmConfig,
    load_algorithm_config,
    nested,
    open_paths,
)
from tianji.config.settings import ALGORITHM_NAME, spelled_like, value_text
from tianji.config.values import Values
from tianji.errors import UsageError
from tianji.programs.program import Program

EXAMPLES: dict[type[Cadence], tuple[str, ...]] = {
    QueueCadence: ("ppo", "impala"),
    ReplayCadence: ("dqn", "apex"),
}
"""Algorithms that learn so, for messages."""

Given: TypeAlias = frozenset[str]
"""The paths of the settings that were given beside the style: by the person, or in the preset that
names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """Style(name="serial", about="One process ...", settings=settings, program=program)"""

    name: str
    about: str
    """One sentence: what the style is."""
    settings: Callable[[Values, Given], Values]
    """Returns the settings of a run in this style; UsageError if the two do not fit. It changes
    nothing when it is applied a second time."""
    program: Callable[[RunConfig, RunPlan], Program]
    """Returns the roles of one group, the workers they live in, and the wires between them."""
    differences: tuple[str, ...] = ()
    """What differs from the style `tianji` beside the program: loss, correction, pacing."""
    kind: Literal["style", "ablation"] = "style"
    """An ablation is the style `tianji` without one of its mechanisms."""


def as_they_are(values: Values, given: Given) -> Values:
    """Return the settings unchanged."""
    return values


def fix(style: str, values: Values, given: Given, why: str, **fixed: Any) -> Values:
    """Set what the style needs; UsageError if the person gave something else.

    fixed: the values by the paths of their settings.
    """
    for path, value in fixed.items():
        if path in given and values[path] != value:
            raise refusal(style, values, path, why, value)
    return {**values, **fixed}


def unless_given(values: Values, given: Given, **wanted: Any) -> Values:
    """Set what the style chooses where the person gave nothing. wanted: as in `fix`."""
    return {**values, **{path: value for path, value in wanted.items() if path not in given}}


def refusal(style: str, values: Mapping[str, Any], path: str, why: str, use: Any) -> UsageError:
    """Return the error for a setting that does not fit the style, with what to use instead."""
    option = spelled_like(path, "--")
    return UsageError(
        f"style is '{style}', and {path} is '{value_text(values[path])}': {why} Use {option} "
        f"{value_text(use)}, or another --style."
    )


def of_family(
    style: str, values: Values, family: type[AlgorithmConfig], why: str, examples: str
) -> None:
    """Raise UsageError unless the algorithm's settings are of this family."""
    if not issubclass(load_algorithm_config(values[ALGORITHM_NAME]), family):
        raise wrong_algorithm(style, values, why, examples)


def wrong_algorithm(style: str, values: Values, why: str, examples: str) -> UsageError:
    """Return the error for an algorithm that the style cannot train with."""
    return UsageError(
        f"style is '{style}', and the algorithm is {values[ALGORITHM_NAME]}: {why} Use a preset or "
        f"an --algorithm such as {examples}, or another --style."
    )


def learns_from(style: str, values: Values, *kinds: type[Cadence], why: str) -> None:
    """Raise UsageError unless the algorithm learns from one of these: a queue of unrolls, or a
    replay store."""
    config = RunConfig.model_validate(nested(values))
    if isinstance(load_algorithm(config.algorithm.name).cadence(config), kinds):
        return
    *others, last = (name for kind in kinds for name in EXAMPLES[kind])
    raise wrong_algorithm(style, values, why, f"{', '.join(others)} or {last}")


def with_algorithm(style: str, values: Values, given: Given, name: str, why: str) -> Values:
    """Return the settings with another algorithm. What both have keeps its value; the rest has the
    defaults of the new one."""
    if values[ALGORITHM_NAME] == name:
        return values
    if ALGORITHM_NAME in given:
        raise refusal(style, values, ALGORITHM_NAME, why, name)
    config = load_algorithm_config(name)
    known = {f"{ALGORITHM}.{field}" for field in config.model_fields}
    kept = {path: value for path, value in values.items() if _is_kept(path, known)}
    open_now = open_paths(RunConfig, config)
    chosen = tuple(path for path in values[CHOOSE] if path in open_now)
    return {**kept, ALGORITHM_NAME: name, CHOOSE: chosen}


def _is_kept(path: str, known: set[str]) -> bool:
    return not path.startswith(f"{ALGORITHM}.") or path in known
