"""The bases that every config record stands on."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import Annotated, Any, ClassVar, Literal, TypeGuard

from pydantic import BaseModel, ConfigDict, Field

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
PositiveFraction = Annotated[float, Field(gt=0.0, le=1.0)]
Count = Annotated[int, Field(ge=1)]
Auto = Literal["auto"]

# Numbers of the algorithm itself, which a person may leave to the planner by writing `auto`. It
# tries several values, or fills the time that the learner has left. See config/auto.py.
TriedCount = Annotated[int, Field(ge=1, json_schema_extra={"auto": "tried"})]
FilledCount = Annotated[int, Field(ge=1, json_schema_extra={"auto": "filled"})]


class Strict(BaseModel):
    """Frozen, and unknown keys are errors."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False
    )


class Record(Strict):
    """What is derived or measured, and kept as JSON. Nobody is shown its fields as settings, so it
    is made ready only when it is first used: a person waits for the first step."""

    model_config = ConfigDict(use_attribute_docstrings=False, defer_build=True)


class AlgorithmConfig(Strict):
    """What every algorithm asks; each adds its own fields in algorithms/NAME/config.py."""

    run_defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Defaults of this algorithm for settings of the run, by path, in place of the run's own."""

    name: str
    """Which algorithm: a name from `tianji train --help`, or `module:attribute` of an Algorithm
    record."""
    gamma: Fraction = 0.99
    """Discount per step; 1 means undiscounted."""
    learning_rate: Positive = 3e-4
    """Learning rate of the optimiser at the start."""
    unroll_length: TriedCount = 32
    """Steps of every environment in one unroll; longer unrolls mean fewer hand-overs and more lag.
    auto: the shortest at full speed."""


def load_algorithm_config(name: str) -> type[AlgorithmConfig]:
    """The config class of an algorithm. For ours, nothing but its config is imported: help pages
    and config files should not wait for what the algorithm itself needs."""
    module = _config_module(name)
    if module is None:
        from tianji.algorithms.registry import load_algorithm

        return load_algorithm(name).config
    found = [c for c in vars(module).values() if isinstance(c, type) and _is_for_algorithm(c)]
    assert len(found) == 1, f"{module.__name__} must hold one AlgorithmConfig, not {found}"
    return found[0]


def _config_module(name: str) -> ModuleType | None:
    folder = name.replace("-", "_")
    if not folder.isidentifier():
        return None
    try:
        return importlib.import_module(f"tianji.algorithms.{folder}.config")
    except ModuleNotFoundError:
        return None


def _is_for_algorithm(found: type) -> TypeGuard[type[AlgorithmConfig]]:
    return issubclass(found, AlgorithmConfig) and found is not AlgorithmConfig
