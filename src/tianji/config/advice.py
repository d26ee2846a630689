"""What a person can do about settings that do not fit, of what the style of the run allows.

advise(config, {"balance": "paced"}, {"max_lag": 1}, or_else="leave lag_target out")
# "Use --balance paced, --max-lag 1, or leave lag_target out."; in the style `impala`:
# "Use --max-lag 1, another --style, or leave lag_target out."
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tianji.config.overrides import styled
from tianji.config.run import RunConfig
from tianji.config.schema import ALGORITHM, CHOOSE, flat, nested
from tianji.config.settings import ALGORITHM_NAME, spelled_like, value_text
from tianji.errors import UsageError

ANOTHER_STYLE = "another --style"


def advise(config: RunConfig, *ways: Mapping[str, Any], or_else: str = "") -> str:
    """Return one sentence with the ways out that the style of the run allows.

    ways: settings to change together, each with its new value.
    or_else: what is possible in every style, in words, such as leaving a setting out.
    """
    allowed = [way for way in ways if _is_allowed(config, way)]
    uses = [_in_words(way) for way in allowed]
    if len(allowed) < len(ways):
        uses.append(ANOTHER_STYLE)
    *first, last = filter(None, (*uses, or_else))
    one_of = f"{', '.join(first)}, or {last}" if first else last
    return f"Use {one_of}."


def _is_allowed(config: RunConfig, changes: Mapping[str, Any]) -> bool:
    values = flat(config.model_dump())
    if ALGORITHM_NAME in changes:
        others = {path: v for path, v in values.items() if not path.startswith(f"{ALGORITHM}.")}
        values = {**others, CHOOSE: ()}  # what the planner chooses may be settings of the old one
    changed = RunConfig.model_validate(nested({**values, **changes}))
    try:
        styled(changed, given=changes)
    except UsageError:
        return False
    return True


def _in_words(changes: Mapping[str, Any]) -> str:
    return " and ".join(f"{_option(path)} {value_text(new)}" for path, new in changes.items())


def _option(path: str) -> str:
    return spelled_like(ALGORITHM if path == ALGORITHM_NAME else path, "--")
