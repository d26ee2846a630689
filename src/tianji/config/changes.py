"""The settings that may change when a run is resumed: its end, its machine, its output.

A change of any other setting would make it a different run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tianji.config.run import RunConfig
from tianji.config.schema import flat, nested
from tianji.config.settings import Setting, list_settings
from tianji.config.tokens import Assignment
from tianji.config.values import Values, assign_all, validate

_CHANGEABLE = (
    *("engine", "num_actors", "learner_threads", "actor_threads"),
    *("target_return", "max_env_steps", "max_wall_s"),
    *("plan.source", "plan.replan", "plan.pin", "plan.buffer_worker"),
)
_CHANGEABLE_GROUPS = ("checkpoint", "evaluate", "observe", "supervise")


def is_changeable(setting: Setting) -> bool:
    """Return whether `tianji resume` takes this setting."""
    return setting.path in _CHANGEABLE or setting.group in _CHANGEABLE_GROUPS


def resume_changes(config: RunConfig, asked: Sequence[Assignment]) -> dict[str, Any]:
    """Return the changes, checked against the run's config and nested as in RunConfig."""
    algorithm = config.algorithm.name
    values: Values = {}
    mistakes = [str(error) for error in assign_all(values, asked, algorithm)]
    for setting in list_settings(type(config.algorithm)):
        if setting.path in values and not is_changeable(setting):
            mistakes.append(
                f"{setting.path} cannot change when a run is resumed; `tianji train` starts "
                f"another run. Allowed: {', '.join((*_CHANGEABLE, *_CHANGEABLE_GROUPS))}."
            )
    changed = validate({**flat(config.model_dump()), **values}, algorithm, mistakes)
    new = flat(changed.model_dump())
    return nested({path: new[path] for path in values})


def with_changes(config: RunConfig, changes: Mapping[str, Any]) -> RunConfig:
    """Return the config of the resumed run."""
    return RunConfig.model_validate(nested({**flat(config.model_dump()), **flat(changes)}))
