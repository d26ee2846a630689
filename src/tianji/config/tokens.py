"""What a person wrote, as assignments: words of a command line, or nested Python and YAML values.

On the command line: `--key value`, `--key=value`, `--flag`, `--no-flag`. Which words belong
together does not depend on the schema: `--key` takes the next word unless that begins with `--`.
What a text means does: `text_value` reads it by the kinds of its setting.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from tianji.config.files import parse_yaml
from tianji.config.settings import ENV_KWARGS, Setting, canonical, spelled_like
from tianji.errors import UsageError

_SCIENTIFIC = re.compile(r"[-+]?\d+(\.\d*)?[eE]\+?\d+")


@dataclass(frozen=True, slots=True)
class Assignment:
    """One wish of a person.

    >>> Assignment("--learning-rate", "1e-3", is_text=True)
    """

    written: str
    """The setting's name as the person wrote it."""
    value: Any
    """None with is_text: a flag without a value."""
    is_text: bool = False


def split_tokens(tokens: Sequence[str]) -> tuple[list[str], list[Assignment]]:
    """Words that belong to no option, and the assignments."""
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


def from_mapping(values: Mapping[str, Any], prefix: str = "") -> list[Assignment]:
    """Assignments from nested Python or YAML values; the keywords of an environment stay whole."""
    assignments: list[Assignment] = []
    for key, value in values.items():
        name = f"{prefix}{key}"
        plain = value.model_dump() if isinstance(value, BaseModel) else value
        if isinstance(plain, Mapping) and canonical(name) != ENV_KWARGS:
            assignments += from_mapping(plain, f"{name}.")
        else:
            assignments.append(Assignment(name, plain))
    return assignments


def text_value(assignment: Assignment, setting: Setting) -> Any:
    """The value behind a text of the command line; numbers stay text, which pydantic reads."""
    text = assignment.value
    kinds = setting.kinds
    if text is None:
        if "boolean" in kinds:
            return True
        name = spelled_like(setting.path, "--")
        raise UsageError(f"'{assignment.written}' needs a value: {name} must be {setting.allowed}.")
    if text.lower() in ("none", "null") and not {"null", "array"}.isdisjoint(kinds):
        return None if "null" in kinds else []
    if "array" in kinds:
        return [part.strip() for part in text.strip("()[] ").split(",") if part.strip()]
    if "object" in kinds:
        return yaml_value(assignment)
    if "integer" in kinds and _SCIENTIFIC.fullmatch(text) and float(text).is_integer():
        return int(float(text))
    return text


def yaml_value(assignment: Assignment) -> Any:
    """A value without a schema (a keyword of an environment), typed as YAML types it."""
    if assignment.value is None:
        return True
    return parse_yaml(assignment.value, f"the value of '{assignment.written}'")
