"""Defaults that depend on other settings. They are the same for every environment.

An algorithm brings defaults for settings of the run (AlgorithmConfig.run_defaults). What a person
or a preset has set always wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tianji.config.schema import AlgorithmConfig, Strict, load_algorithm_config

_ALGORITHM = "algorithm"


def run_defaults(algorithm: type[AlgorithmConfig], values: Mapping[str, Any]) -> dict[str, Any]:
    """The algorithm's defaults for settings of the run, by path, as they apply to these values."""
    found = dict(algorithm.run_defaults)
    if _get(values, "model.factory") is not None:
        # Only our own networks normalise their observations; a person's network does it itself.
        found.pop("normalize.observations", None)
    return found


def with_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a run, completed by its algorithm's defaults for what is not set."""
    algorithm = values.get(_ALGORITHM)
    if isinstance(algorithm, AlgorithmConfig):
        record: type[AlgorithmConfig] = type(algorithm)
    else:
        name = algorithm.get("name") if isinstance(algorithm, Mapping) else algorithm
        if not isinstance(name, str):
            return dict(values)
        record = load_algorithm_config(name)
    filled = dict(values)
    for path, default in run_defaults(record, values).items():
        if _get(values, path) is None:
            _set(filled, path, default)
    return filled


def _get(values: Mapping[str, Any], path: str) -> Any:
    """What was set at a path; None where nothing was."""
    group, _, last = path.rpartition(".")
    record = values.get(group) if group else values
    if isinstance(record, Strict):
        return getattr(record, last) if last in record.model_fields_set else None
    return record.get(last) if isinstance(record, Mapping) else None


def _set(values: dict[str, Any], path: str, value: Any) -> None:
    group, _, last = path.rpartition(".")
    if not group:
        values[last] = value
        return
    record = values.get(group) or {}
    given = record.model_dump(exclude_unset=True) if isinstance(record, Strict) else dict(record)
    values[group] = {**given, last: value}
