"""All settings of a run as a flat list, with name, meaning, default and range.

Help pages, overrides and error messages read this list, so that they agree.

    settings = list_settings(load_algorithm_config("ppo"))
    find_setting("--learning-rate", settings).path        # "algorithm.learning_rate"
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic.fields import FieldInfo

from tianji.config.foreign_names import own_name
from tianji.config.run import RunConfig
from tianji.config.schema import ALGORITHM, AUTO, AlgorithmConfig, Strict
from tianji.errors import UsageError, did_you_mean

ALGORITHM_NAME = "algorithm.name"
LIST_ALL = "`tianji train --help` lists all settings."


class UnknownSetting(UsageError):
    """The chosen algorithm has no setting of that name."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One value a person can set.

    >>> Setting("algorithm.gamma", "Discount per step.", 0.99, "a number from 0 to 1", {"number"})
    """

    path: str
    about: str
    default: Any
    allowed: str
    """The allowed values in words, to follow "must be"."""
    kinds: frozenset[str]
    """Accepted JSON types: integer, number, boolean, string, null, array, object."""

    @property
    def group(self) -> str:
        """The record that it belongs to; empty for settings of the run itself."""
        return self.path.rpartition(".")[0]

    @property
    def last_part(self) -> str:
        return self.path.rpartition(".")[2]


@cache
def list_settings(algorithm: type[AlgorithmConfig]) -> tuple[Setting, ...]:
    """Return every setting of a run with this algorithm, in the order of the schema."""
    return tuple(_walk(RunConfig, "", algorithm))


def _walk(record: type[Strict], prefix: str, algorithm: type[AlgorithmConfig]) -> Iterator[Setting]:
    schema = record.model_json_schema()
    for name, field in record.model_fields.items():
        path = f"{prefix}{name}"
        inner = algorithm if path == ALGORITHM else field.annotation
        if isinstance(inner, type) and issubclass(inner, Strict):
            yield from _walk(inner, f"{path}.", algorithm)
            continue
        described = schema["properties"][name]
        yield Setting(
            path=path,
            about=_about(record, name),
            default=algorithm.run_defaults.get(path, _own_default(field)),
            allowed=describe_allowed(described),
            kinds=frozenset(
                option.get("type", "string") for option in described.get("anyOf", [described])
            ),
        )


def _own_default(field: FieldInfo) -> Any:
    return None if field.is_required() else field.get_default(call_default_factory=True)


def _about(record: type[Strict], name: str) -> str:
    """Return the sentence under the field, or under the field that it redefines."""
    lineage = [cls for cls in record.__mro__ if issubclass(cls, Strict)]
    fields = [cls.model_fields[name] for cls in lineage if name in cls.model_fields]
    found = next((field.description for field in fields if field.description), "")
    return " ".join(found.split())


def value_at(config: Strict, path: str) -> Any:
    """Return the value of the setting with this path."""
    found: Any = config
    for name in path.split("."):
        found = getattr(found, name)
    return found


def describe_allowed(schema: Mapping[str, Any]) -> str:
    """Return the JSON schema of one value in words.

    >>> describe_allowed({"type": "integer", "minimum": 1})
    'a whole number of at least 1'
    """
    return _describe(schema) + (f", or {AUTO!r}" if AUTO in schema else "")


def _describe(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return ", or ".join(describe_allowed(option) for option in schema["anyOf"])
    if "const" in schema:
        return repr(schema["const"])
    if "enum" in schema:
        return "one of " + ", ".join(repr(choice) for choice in schema["enum"])
    kind = schema.get("type")
    if kind == "array":
        return _describe_array(schema)
    if kind in ("integer", "number"):
        return ("a whole number" if kind == "integer" else "a number") + _describe_range(schema)
    words = {"boolean": "true or false", "null": "none", "object": "a mapping"}
    return words.get(str(kind), "text")


def _describe_array(schema: Mapping[str, Any]) -> str:
    if "prefixItems" in schema:
        parts = [describe_allowed(item) for item in schema["prefixItems"]]
        return f"{len(parts)} values separated by commas ({'; '.join(parts)})"
    return f"values separated by commas (each {describe_allowed(schema.get('items', {}))})"


def _describe_range(schema: Mapping[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f" from {_number(low)} to {_number(high)}"
    words = {
        "minimum": "of at least",
        "exclusiveMinimum": "above",
        "maximum": "of at most",
        "exclusiveMaximum": "below",
    }
    parts = [f"{word} {_number(schema[key])}" for key, word in words.items() if key in schema]
    return f" {' and '.join(parts)}" if parts else ""


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


def value_text(value: Any) -> str:
    """Return a value as a person types it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple) and value:
        return ",".join(value_text(entry) for entry in value)
    return "none" if value in (None, {}, (), []) else str(value) or "''"


def short_names(settings: tuple[Setting, ...]) -> dict[str, Setting]:
    """Return settings by their shortest name: the last part, unless two settings share it."""
    sharing = Counter(setting.last_part for setting in settings)
    named: dict[str, Setting] = {}
    for setting in settings:
        if setting.path == ALGORITHM_NAME:
            named[ALGORITHM] = setting
        else:
            unique = sharing[setting.last_part] == 1
            named[setting.last_part if unique else setting.path] = setting
    return named


def canonical(name: str) -> str:
    """Return the name with underscores: `--learning-rate` becomes `learning_rate`."""
    return name.removeprefix("--").replace("-", "_")


def spelled_like(name: str, written: str) -> str:
    """Return a name in the style of a written one: `--max-lag` or `max_lag`."""
    return "--" + name.replace("_", "-") if written.startswith("--") else name


def find_setting(written: str, settings: tuple[Setting, ...]) -> Setting:
    """Return the setting with this name; UsageError with the closest names if there is none."""
    key = canonical(written)
    named = short_names(settings)
    by_path = {setting.path: setting for setting in settings}
    found = named.get(key) or by_path.get(key)
    if found is not None:
        return found
    others = [setting for setting in settings if setting.path != ALGORITHM_NAME]
    inside = [setting.path for setting in others if key in (setting.group, setting.last_part)]
    if inside:
        options = ", ".join(f"'{spelled_like(path, written)}'" for path in inside)
        raise UsageError(f"'{written}' could be several settings. Name one of: {options}.")
    names = [*named, *by_path]
    own = own_name(key, names)
    similar = {spelled_like(name, written): name for name in ([own] if own else names)}
    hint = did_you_mean(spelled_like(own or key, written), similar)
    raise UnknownSetting(f"Unknown setting '{written}'.{hint} {LIST_ALL}")
