"""The types that config records are made of, their values by path, and defaults that are not fixed.

A number of the algorithm that is written as `auto` gets its default, and its path is added to
plan.choose: the planner measures and changes it, and all other code sees a number.

An algorithm has its own defaults for some settings of the run (AlgorithmConfig.run_defaults). A
value that a person or a preset has set always wins. No default here depends on the environment;
rules that look at it choose before a config is made (tianji.defaults).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType, ModuleType
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
PositiveFraction = Annotated[float, Field(gt=0.0, le=1.0)]
Count = Annotated[int, Field(ge=1)]
Auto = Literal["auto"]

# Numbers of the algorithm that a person may leave to the planner by writing `auto`. It tries
# several values, or fills the time that the learner has left.
TriedCount = Annotated[int, Field(ge=1, json_schema_extra={"auto": "tried"})]
FilledCount = Annotated[int, Field(ge=1, json_schema_extra={"auto": "filled"})]


ALGORITHM = "algorithm"
ENV_KWARGS = "env_kwargs"


class Strict(BaseModel):
    """A frozen record that refuses unknown keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False
    )


class Record(Strict):
    """A record of derived or measured values, saved as JSON; its fields are no settings.

    Pydantic builds it at its first use, which makes the start of a run faster.
    """

    model_config = ConfigDict(use_attribute_docstrings=False, defer_build=True)


# Values that `tianji sweep` tries of a setting that several algorithms have.
SEARCHED_ENTROPY = {"entropy": (0.0, 0.001, 0.003, 0.01, 0.03)}
SEARCHED_TAU = {"target_tau": (0.002, 0.005, 0.01, 0.02)}


class AlgorithmConfig(Strict):
    """The settings of every algorithm; each adds its own in algorithms/NAME/config.py."""

    run_defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Defaults of this algorithm for settings of the run, by path; they replace the run's own."""
    searched: ClassVar[Mapping[str, tuple[float, ...]]] = MappingProxyType(
        {"gamma": (0.95, 0.98, 0.99, 0.995, 0.999)}
    )
    """Values that `tianji sweep` tries where nobody says what to search, by the algorithm's own
    names; the value of the runs and a range of learning rates are added."""

    name: str
    """Which algorithm: a name from `tianji train --help`, or `module:attribute` of an Algorithm
    record. auto: the preset's; without a preset, rules choose it by the environment."""
    gamma: Fraction = 0.99
    """Discount per step; 1 means undiscounted."""
    learning_rate: Positive = 3e-4
    """Learning rate of the optimiser at the start."""
    unroll_length: TriedCount = 32
    """Steps of every environment in one unroll; longer unrolls mean fewer hand-overs and more lag.
    auto: the shortest at full speed."""


def load_algorithm_config(name: str) -> type[AlgorithmConfig]:
    """Return the config class of an algorithm.

    For built-in algorithms only the config module is imported, so that help pages stay fast.
    """
    module = _config_module(name)
    if module is None:
        from tianji.algorithms.registry import load_algorithm

        return load_algorithm(name).config
    classes = [found for found in vars(module).values() if isinstance(found, type)]
    found = [c for c in classes if issubclass(c, AlgorithmConfig) and c is not AlgorithmConfig]
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


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested values by path; the keywords of an environment stay one value.

    >>> flat({"checkpoint": {"period_s": 5}})
    {'checkpoint.period_s': 5}
    """
    found: dict[str, Any] = {}
    for key, value in values.items():
        path = f"{prefix}{key}"
        plain = value.model_dump() if isinstance(value, BaseModel) else value
        if isinstance(plain, Mapping) and path.replace("-", "_") != ENV_KWARGS:
            found |= flat(plain, f"{path}.")
        else:
            found[path] = plain
    return found


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by path as nested dictionaries, the inverse of flat()."""
    tree: dict[str, Any] = {}
    for path, value in values.items():
        *groups, last = path.split(".")
        branch = tree
        for group in groups:
            branch = branch.setdefault(group, {})
        branch[last] = value
    return tree


AUTO = "auto"
How = Literal["tried", "filled"]
"""The planner tries several values, or fills the time that the learner has left."""
_HOW: dict[str, How] = {"tried": "tried", "filled": "filled"}
CHOOSE = "plan.choose"


def open_paths(run: type[Strict], algorithm: type[AlgorithmConfig]) -> dict[str, How]:
    """Return the paths of the settings that the planner can choose, and how it chooses them."""
    found: dict[str, How] = {}
    for record, prefix in ((run, ""), (algorithm, f"{ALGORITHM}.")):
        for name, field in record.model_fields.items():
            extra = field.json_schema_extra
            how = _HOW.get(str(extra.get(AUTO))) if isinstance(extra, dict) else None
            if how is not None:
                found[prefix + name] = how
    return found


def fill(run: type[Strict], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run with defaults in place of `auto` and of what is not set."""
    algorithm = given.get(ALGORITHM)
    if isinstance(algorithm, str):
        algorithm = {"name": algorithm}
    if isinstance(algorithm, AlgorithmConfig):
        record = type(algorithm)
    elif isinstance(algorithm, Mapping) and isinstance(algorithm.get("name"), str):
        record = load_algorithm_config(algorithm["name"])
    else:
        return dict(given)  # validation says what is missing
    set_values = {
        key: value.model_dump(exclude_unset=True) if isinstance(value, Strict) else value
        for key, value in given.items()
    }
    values = flat(set_values | {ALGORITHM: algorithm})
    chosen = [path for path in open_paths(run, record) if values.get(path) == AUTO]
    if chosen:
        listed = tuple(values.get(CHOOSE, ()))
        values = {path: value for path, value in values.items() if path not in chosen}
        values[CHOOSE] = tuple(dict.fromkeys((*listed, *chosen)))
    for path, default in record.run_defaults.items():
        if path == "normalize.observations" and values.get("model.factory") is not None:
            continue  # only our own networks normalise their observations
        if values.get(path) is None and path.rpartition(".")[0] not in values:
            values[path] = default
    filled = nested(values)
    return {**filled, ALGORITHM: algorithm} if isinstance(algorithm, AlgorithmConfig) else filled


def check_chosen(
    run: type[Strict], algorithm: type[AlgorithmConfig], chosen: Sequence[str]
) -> None:
    """Raise ValueError if plan.choose names a setting that the planner cannot choose."""
    allowed = open_paths(run, algorithm)
    for path in chosen:
        if path not in allowed:
            raise ValueError(
                f"plan.choose names '{path}': the planner can choose {', '.join(allowed)}."
            )
