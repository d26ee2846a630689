"""Compares settings that were saved with those of now, in words.

    change_since(saved, now)        # "gamma was 0.99, and is 0.9 now"; "" where nothing differs

A setting that is newer than the file has its default there: the runs of then had no other choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from tianji.config.run import RunConfig
from tianji.config.schema import flat
from tianji.config.settings import value_text


def change_since(saved: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return what differs first, of the settings that `now` has; both as a config dumps them."""
    then, asked = flat(_completed(saved)), flat(now)
    changed = (path for path in asked if then.get(path) != asked[path])
    if (path := next(changed, None)) is None:
        return ""
    return f"{path} was {value_text(then.get(path))}, and is {value_text(asked[path])} now"


def _completed(saved: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return RunConfig.model_validate(saved).model_dump(mode="json")
    except ValidationError:  # of a version that had other settings
        return saved
