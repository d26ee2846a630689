"""What may change when a run is resumed: when it stops, where it runs, what it shows and saves.

Everything else would make it another run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tianji.config.run import RunConfig
from tianji.config.settings import Setting, list_settings
from tianji.config.tokens import Assignment, from_mapping
from tianji.config.values import Values, assign, nested, raise_mistakes, validate
from tianji.errors import UsageError

_CHANGEABLE = (
    "engine",
    "num_actors",
    "learner_threads",
    "actor_threads",
    "target_return",
    "max_env_steps",
    "max_wall_s",
    "plan.source",
    "plan.replan",
    "plan.pin",
)
_CHANGEABLE_GROUPS = ("checkpoint", "evaluate", "observe", "supervise")


def is_changeable(setting: Setting) -> bool:
    """True for a setting that `tianji resume` takes."""
    return setting.path in _CHANGEABLE or setting.group in _CHANGEABLE_GROUPS


def resume_changes(config: RunConfig, asked: Sequence[Assignment]) -> dict[str, Any]:
    """The changes asked for, checked against the run's config, nested as in RunConfig."""
    settings = list_settings(type(config.algorithm))
    values: Values = {}
    mistakes: list[str] = []
    for assignment in asked:
        try:
            assign(values, assignment, settings, config.algorithm.name)
        except UsageError as error:
            mistakes.append(str(error))
    fixed = [s.path for s in settings if s.path in values and not is_changeable(s)]
    for path in fixed:
        mistakes.append(
            f"{path} cannot change when a run is resumed; `tianji train` starts another run. "
            f"Free to change: {', '.join((*_CHANGEABLE, *_CHANGEABLE_GROUPS))}."
        )
    changed = validate({**_flat(config), **values}, settings, mistakes)
    raise_mistakes(mistakes)
    assert changed is not None
    new = _flat(changed)
    return nested({path: new[path] for path in values})


def with_changes(config: RunConfig, changes: Mapping[str, Any]) -> RunConfig:
    """The config of the resumed run."""
    values = {a.written: a.value for a in from_mapping(changes)}
    return RunConfig.model_validate(nested({**_flat(config), **values}))


def _flat(config: RunConfig) -> Values:
    return {a.written: a.value for a in from_mapping(config.model_dump())}
