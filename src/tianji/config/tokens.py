"""The first stage from written words to a RunConfig: assignments of a name and a value.

Command line: `--key value`, `--key=value`, `--flag`, `--no-flag`. `--key` takes the next word
unless that begins with `--`, whatever the schema says. The type of the setting decides how the text
is read (`read_value`). Python and YAML values are assignments that need no reading.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tianji.config.files import parse_yaml
from tianji.config.schema import flat
from tianji.config.settings import Setting, spelled_like
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
