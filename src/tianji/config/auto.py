"""`auto` as the value of a number that changes the algorithm: environments, lengths, batches.

Such a number always is one, so that nobody behind the config has to ask: where `auto` was written,
the setting has its default until the planner has measured, and its path stands in plan.choose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tianji.config.schema import AlgorithmConfig, Strict, load_algorithm_config

AUTO = "auto"
_ALGORITHM = "algorithm"
How = Literal["tried", "filled"]
"""Several values are tried, or the time that the learner has left is filled."""
_HOW: dict[str, How] = {"tried": "tried", "filled": "filled"}


def open_paths(run: type[Strict], algorithm: type[AlgorithmConfig]) -> dict[str, How]:
    """Paths of the settings that take `auto` in this sense, and how they are chosen."""
    inner = {f"{_ALGORITHM}.{name}": how for name, how in _open_fields(algorithm).items()}
    return {**_open_fields(run), **inner}


def _open_fields(record: type[Strict]) -> dict[str, How]:
    found: dict[str, How] = {}
    for name, field in record.model_fields.items():
        extra = field.json_schema_extra
        how = _HOW.get(str(extra.get(AUTO))) if isinstance(extra, dict) else None
        if how is not None:
            found[name] = how
    return found


def without_auto(run: type[Strict], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with defaults in place of `auto`, and plan.choose grown by their paths."""
    left, chosen = _split(run, values, "")
    algorithm = values.get(_ALGORITHM)
    if isinstance(algorithm, dict) and isinstance(algorithm.get("name"), str):
        record = load_algorithm_config(algorithm["name"])
        left[_ALGORITHM], more = _split(record, algorithm, f"{_ALGORITHM}.")
        chosen += more
    if not chosen:
        return dict(values)
    plan = values.get("plan") or {}
    plan = plan.model_dump() if isinstance(plan, Strict) else dict(plan)
    chosen = [path for path in chosen if path not in plan.get("choose", ())]
    return {**left, "plan": {**plan, "choose": (*plan.get("choose", ()), *chosen)}}


def _split(
    record: type[Strict], values: Mapping[str, Any], prefix: str
) -> tuple[dict[str, Any], list[str]]:
    names = [name for name in _open_fields(record) if values.get(name) == AUTO]
    left = {name: value for name, value in values.items() if name not in names}
    return left, [f"{prefix}{name}" for name in names]


def check_chosen(
    run: type[Strict], algorithm: type[AlgorithmConfig], chosen: Sequence[str]
) -> None:
    allowed = open_paths(run, algorithm)
    for path in chosen:
        if path not in allowed:
            raise ValueError(
                f"plan.choose names '{path}': the planner can choose {', '.join(allowed)}."
            )
