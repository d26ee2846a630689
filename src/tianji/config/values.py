"""From written words to values by path, and from them to one validated record.

Command line: `--key value`, `--key=value`, `--flag`, `--no-flag`. `--key` takes the next word
unless that begins with `--`, whatever the schema says. The type of the setting decides how the text
is read (`read_value`). Python and YAML values are assignments that need no reading.

Every mistake becomes one short sentence: which setting, which value, what is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import ValidationError

from tianji.config.files import parse_yaml
from tianji.config.run import RunConfig
from tianji.config.schema import ENV_KWARGS, flat, load_algorithm_config, nested
from tianji.config.settings import (
    Setting,
    UnknownSetting,
    canonical,
    find_setting,
    list_settings,
    short_names,
    spelled_like,
    value_text,
)
from tianji.errors import UsageError

_SCIENTIFIC = re.compile(r"[-+]?\d+(\.\d*)?[eE]\+?\d+")


@dataclass(frozen=True, slots=True)
class Assignment:
    """One setting as a person wrote it.

    >>> Assignment("--learning-rate", "1e-3", is_text=True)
    """

    written: str
    value: Any
    """None with is_text: a flag without a value."""
    is_text: bool = False


def split_tokens(tokens: Sequence[str]) -> tuple[list[str], list[Assignment]]:
    """Return the words that belong to no option, and the assignments."""
    words: list[str] = []
    assignments: list[Assignment] = []
    rest = list(tokens)
    while rest:
        token = rest.pop(0)
        if not token.startswith("--"):
            words.append(token)
            continue
        name, equals, text = token.partition("=")
        value: str | None = text if equals else None
        if not equals and rest and not rest[0].startswith("--"):
            value = rest.pop(0)
        assignments.append(Assignment(name, value, is_text=True))
    return words, assignments


def from_mapping(values: Mapping[str, Any]) -> list[Assignment]:
    """Return nested Python or YAML values as assignments."""
    return [Assignment(path, value) for path, value in flat(values).items()]


def read_value(assignment: Assignment, setting: Setting | None) -> Any:
    """Return the value of an assignment; numbers stay text, which pydantic reads.

    Without a setting (a keyword of an environment) the text is read as YAML.
    """
    if not assignment.is_text:
        return assignment.value
    if assignment.value is None:
        if setting is None or "boolean" in setting.kinds:
            return True
        name = spelled_like(setting.path, "--")
        raise UsageError(f"'{assignment.written}' needs a value: {name} must be {setting.allowed}.")
    if setting is None or "object" in setting.kinds:
        return parse_yaml(assignment.value, f"the value of '{assignment.written}'")
    return _read_text(assignment.value, setting.kinds)


def _read_text(text: str, kinds: frozenset[str]) -> Any:
    if text.lower() in ("none", "null") and not {"null", "array"}.isdisjoint(kinds):
        return None if "null" in kinds else []
    if "array" in kinds:
        return [part.strip() for part in text.strip("()[] ").split(",") if part.strip()]
    if "integer" in kinds and _SCIENTIFIC.fullmatch(text) and float(text).is_integer():
        return int(float(text))
    return text


Values: TypeAlias = dict[str, Any]
"""Values by full path, `{"algorithm.gamma": 0.98}`; `env_kwargs` is one mapping."""


def assign_all(values: Values, asked: Sequence[Assignment], algorithm: str) -> list[UsageError]:
    """Write all assignments into the values; return the mistakes."""
    mistakes = []
    for assignment in asked:
        try:
            _assign(values, assignment, algorithm)
        except UsageError as error:
            mistakes.append(error)
    return mistakes


def _assign(values: Values, assignment: Assignment, algorithm: str) -> None:
    settings = list_settings(load_algorithm_config(algorithm))
    key = canonical(assignment.written)
    if key.startswith(f"{ENV_KWARGS}."):
        path, value = ENV_KWARGS, {key.removeprefix(f"{ENV_KWARGS}."): read_value(assignment, None)}
    else:
        try:
            path, value = _find(assignment, settings)
        except UnknownSetting as error:
            raise UnknownSetting(f"{error}{_owner_hint(assignment, algorithm)}") from None
    if path != ENV_KWARGS:
        values[path] = value
    elif isinstance(value, Mapping):
        values[path] = {**values.get(path, {}), **value}
    else:
        raise UsageError(
            f"{ENV_KWARGS} = {value!r}: must be a mapping; on the command line, "
            f"write --env-kwargs.KEY VALUE."
        )


def _find(assignment: Assignment, settings: tuple[Setting, ...]) -> tuple[str, Any]:
    """Return the path and the value of an assignment; the value of `--no-flag` is False."""
    try:
        setting = find_setting(assignment.written, settings)
    except UnknownSetting:
        negated = _negated(assignment, settings)
        if negated is None:
            raise
        return negated.path, False
    return setting.path, read_value(assignment, setting)


def path_of(assignment: Assignment, algorithm: str) -> str:
    """Return the path of the setting that an assignment is for, or what was written for none."""
    settings = list_settings(load_algorithm_config(algorithm))
    try:
        setting = _find_or_none(assignment.written, settings) or _negated(assignment, settings)
    except UsageError:
        setting = None
    return canonical(assignment.written) if setting is None else setting.path


def _negated(assignment: Assignment, settings: tuple[Setting, ...]) -> Setting | None:
    key = canonical(assignment.written)
    if not assignment.is_text or not key.startswith("no_"):
        return None
    setting = _find_or_none(key.removeprefix("no_"), settings)
    if setting is None or "boolean" not in setting.kinds:
        return None
    if assignment.value is not None:
        raise UsageError(
            f"'{assignment.written}' takes no value, but '{assignment.value}' follows it. "
            "A preset comes before the settings."
        )
    return setting


def _find_or_none(written: str, settings: tuple[Setting, ...]) -> Setting | None:
    try:
        return find_setting(written, settings)
    except UsageError:
        return None


def _owner_hint(assignment: Assignment, algorithm: str) -> str:
    """Return a note if the name is a setting of another algorithm."""
    from tianji.algorithms.registry import BUILT_IN

    for other in BUILT_IN:
        settings = list_settings(load_algorithm_config(other))
        if other != algorithm and _find_or_none(assignment.written, settings) is not None:
            return f" ({other} has it; this run uses {algorithm}.)"
    return ""


def validate(values: Values, algorithm: str, mistakes: Sequence[str]) -> RunConfig:
    """Return the record; UsageError with these mistakes and those of the values, if any."""
    found = list(mistakes)
    try:
        config = RunConfig.model_validate(nested(values))
    except ValidationError as error:
        found += explain(error, list_settings(load_algorithm_config(algorithm)), values)
    if len(found) == 1:
        raise UsageError(found[0])
    if found:
        lines = "\n".join(f"  - {mistake}" for mistake in found)
        raise UsageError(f"{len(found)} mistakes in the settings:\n{lines}")
    return config


def explain(
    error: ValidationError, settings: tuple[Setting, ...], values: Mapping[str, Any]
) -> list[str]:
    """Return one sentence for each wrong setting.

    values: the given values by path. A union reports each of its members; the first report counts.
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
