"""Options of verbs that are not settings of a run, beside those that are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from tianji.config.schema import Strict
from tianji.config.settings import canonical
from tianji.config.values import Assignment
from tianji.errors import UsageError

if TYPE_CHECKING:
    from tianji.virtual.clock import NetworkModel

Options = TypeVar("Options", bound=Strict)
LINK_GBIT, LINK_MS = 10.0, 0.05
"""What a link between hosts is taken to be."""


def take(
    kind: type[Options], assignments: Sequence[Assignment], command: str
) -> tuple[Options, list[Assignment]]:
    """Return the options of this kind among what was written, and the rest."""
    found: dict[str, Any] = {}
    rest = []
    for assignment in assignments:
        name = canonical(assignment.written)
        if name in kind.model_fields:
            if assignment.value is None:
                raise UsageError(f"'{assignment.written}' needs a value.")
            found[name] = assignment.value
        else:
            rest.append(assignment)
    try:
        return kind.model_validate(found), rest
    except ValidationError as error:
        first = error.errors()[0]
        option, allowed = spelled(str(first["loc"][0])), first["msg"].removeprefix("Input should ")
        raise UsageError(
            f"{option} = {first['input']}: must {allowed}. See `{command} --help`."
        ) from error


def spelled(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def option_list(kind: type[Strict]) -> str:
    """Return every option with what it means, one on a line."""
    return "\n".join(
        f"  {spelled(name)}: {(field.description or '').replace(chr(10), ' ')}"
        for name, field in kind.model_fields.items()
    )


def link_model(gbit: float, ms: float) -> NetworkModel:
    """Return links of so many gigabits per second, with so many milliseconds of latency."""
    from tianji.virtual.clock import NetworkModel

    return NetworkModel(gbit * 1e9 / 8, ms / 1e3)
