"""Values by path of the schema: assigned one by one, then validated as one record.

Every mistake becomes one short sentence: which setting, what was given, what is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pydantic import ValidationError

from tianji.config.run import RunConfig
from tianji.config.schema import load_algorithm_config
from tianji.config.settings import (
    ENV_KWARGS,
    Setting,
    UnknownSetting,
    canonical,
    find_setting,
    list_settings,
    short_names,
    value_text,
)
from tianji.config.tokens import Assignment, text_value, yaml_value
from tianji.errors import UsageError

Values: TypeAlias = dict[str, Any]
"""By full path, `{"algorithm.gamma": 0.98}`; `env_kwargs` is one mapping."""


def assign(
    values: Values, assignment: Assignment, settings: tuple[Setting, ...], algorithm: str
) -> None:
    """Put one wish where it belongs; UsageError where it fits nowhere."""
    key = canonical(assignment.written)
    if key.startswith(f"{ENV_KWARGS}."):
        value = yaml_value(assignment) if assignment.is_text else assignment.value
        _merge_env_kwargs(values, {key.removeprefix(f"{ENV_KWARGS}."): value})
        return
    try:
        setting, value = _meant(assignment, settings)
    except UnknownSetting as error:
        raise UnknownSetting(f"{error}{_owner_hint(assignment, algorithm)}") from None
    if setting.path != ENV_KWARGS:
        values[setting.path] = value
    elif isinstance(value, Mapping):
        _merge_env_kwargs(values, value)
    else:
        raise UsageError(
            f"{ENV_KWARGS} = {value!r}: must be a mapping; on the command line, "
            f"write --env-kwargs.KEY VALUE."
        )


def _merge_env_kwargs(values: Values, more: Mapping[str, Any]) -> None:
    values[ENV_KWARGS] = {**values.get(ENV_KWARGS, {}), **more}


def _meant(assignment: Assignment, settings: tuple[Setting, ...]) -> tuple[Setting, Any]:
    """The setting, and the value in its own type; `--no-flag` is False."""
    try:
        setting = find_setting(assignment.written, settings)
    except UnknownSetting:
        negated = _negated(assignment, settings)
        if negated is None:
            raise
        return negated, False
    return setting, text_value(assignment, setting) if assignment.is_text else assignment.value


def _negated(assignment: Assignment, settings: tuple[Setting, ...]) -> Setting | None:
    key = canonical(assignment.written)
    if not assignment.is_text or not key.startswith("no_"):
        return None
    try:
        setting = find_setting(key.removeprefix("no_"), settings)
    except UsageError:
        return None
    if "boolean" not in setting.kinds:
        return None
    if assignment.value is not None:
        raise UsageError(
            f"'{assignment.written}' takes no value, but '{assignment.value}' follows it. "
            "A preset comes before the settings."
        )
    return setting


def _owner_hint(assignment: Assignment, algorithm: str) -> str:
    """Say so when the name belongs to another algorithm than the chosen one."""
    from tianji.algorithms.registry import BUILT_IN

    for other in BUILT_IN:
        if other == algorithm:
            continue
        try:
            find_setting(assignment.written, list_settings(load_algorithm_config(other)))
        except UsageError:
            continue
        return f" ({other} has it; this run uses {algorithm}.)"
    return ""


def validate(
    values: Values, settings: tuple[Setting, ...], mistakes: list[str]
) -> RunConfig | None:
    """The record, or None with sentences added to the mistakes."""
    try:
        return RunConfig.model_validate(nested(values))
    except ValidationError as error:
        mistakes += explain(error, settings, values)
        return None


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Paths as the records that RunConfig is made of."""
    tree: dict[str, Any] = {}
    for path, value in values.items():
        *groups, last = path.split(".")
        branch = tree
        for group in groups:
            branch = branch.setdefault(group, {})
        branch[last] = value
    return tree


def explain(
    error: ValidationError, settings: tuple[Setting, ...], values: Mapping[str, Any]
) -> list[str]:
    """One sentence per setting that is wrong.

    values: what was given, by path of the setting; a union reports each of its members, so that
    the first report of a setting stands for all.
    """
    names = {setting.path: name for name, setting in short_names(settings).items()}
    by_path = {setting.path: setting for setting in settings}
    sentences: dict[str, str] = {}
    for found in error.errors(include_url=False):
        path = _longest_path(found["loc"], by_path)
        if path and found["type"] != "value_error":
            given = values.get(path, found["input"])
            sentence = f"{names[path]} = {value_text(given)}: must be {by_path[path].allowed}."
        else:
            where = ".".join(str(part) for part in found["loc"])
            reason = str(found.get("ctx", {}).get("error", found["msg"]))
            sentence = f"{names.get(path, where)}: {reason}" if where else reason
        sentences.setdefault(path or sentence, sentence)
    return list(sentences.values())


def _longest_path(loc: Sequence[int | str], by_path: Mapping[str, Setting]) -> str:
    for end in range(len(loc), 0, -1):
        path = ".".join(str(part) for part in loc[:end])
        if path in by_path:
            return path
    return ""


def raise_mistakes(mistakes: Sequence[str]) -> None:
    """Tell all mistakes of one call at once."""
    if len(mistakes) == 1:
        raise UsageError(mistakes[0])
    if mistakes:
        lines = "\n".join(f"  - {mistake}" for mistake in mistakes)
        raise UsageError(f"{len(mistakes)} mistakes in the settings:\n{lines}")
