"""Values of settings that a person left open: `auto`, and the defaults of the algorithm.

A number of the algorithm that is written as `auto` gets its default, and its path is added to
plan.choose: the planner measures and changes it, and all other code sees a number.

An algorithm has its own defaults for some settings of the run (AlgorithmConfig.run_defaults). A
value that a person or a preset has set always wins. No default depends on the environment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tianji.config.schema import (
    ALGORITHM,
    AlgorithmConfig,
    Strict,
    flat,
    load_algorithm_config,
    nested,
)

AUTO = "auto"
How = Literal["tried", "filled"]
"""The planner tries several values, or fills the time that the learner has left."""
_HOW: dict[str, How] = {"tried": "tried", "filled": "filled"}
_CHOOSE = "plan.choose"


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
    values = flat({key: _as_set(value) for key, value in given.items()} | {ALGORITHM: algorithm})
    chosen = [path for path in open_paths(run, record) if values.get(path) == AUTO]
    if chosen:
        listed = tuple(values.get(_CHOOSE, ()))
        values = {path: value for path, value in values.items() if path not in chosen}
        values[_CHOOSE] = tuple(dict.fromkeys((*listed, *chosen)))
    for path, default in record.run_defaults.items():
        if path == "normalize.observations" and values.get("model.factory") is not None:
            continue  # only our own networks normalise their observations
        if values.get(path) is None and path.rpartition(".")[0] not in values:
            values[path] = default
    filled = nested(values)
    return {**filled, ALGORITHM: algorithm} if isinstance(algorithm, AlgorithmConfig) else filled


def _as_set(value: Any) -> Any:
    return value.model_dump(exclude_unset=True) if isinstance(value, Strict) else value


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
