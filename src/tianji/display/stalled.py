"""What a run that makes no progress waits for, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SILENT_S = 5.0
"""A role that shows no sign of life for this long is named."""
_MOST_NAMED = 3
_WHAT = {
    "starting": "it has been starting",
    "acting": "its environment has not answered",
    "updating": "it has been in one update",
    "saving": "it has been saving",
}
"""What a silent role is doing, by its activity; the time follows."""


def waits_for(record: Mapping[str, Any], limit_s: float) -> str:
    """The roles that have been silent for a while, and what they are doing; else nothing.

    limit_s: the silence after which a role is restarted (supervise.heartbeat_timeout_s).
    """
    activities = record.get("activity", {})
    silent = {role: s for role, s in record.get("silent_s", {}).items() if s >= SILENT_S}
    if not silent:
        return ""
    first = max(silent, key=lambda role: silent[role])
    activity = activities.get(first, "")
    alike = [role for role in silent if activities.get(role, "") == activity]
    what = _WHAT.get(activity, f"no sign of life while {activity}")
    told = f"waiting for {_named(alike)}: {what} for {silent[first]:.0f} s"
    if activity != "acting":
        return told
    return f"{told}; restart after {limit_s:g} s (supervise.heartbeat_timeout_s)"


def waits_for_version(record: Mapping[str, Any]) -> str:
    """For a run whose roles are all alive: the version they work on, and what each is doing."""
    version = record.get("version")
    which = "the first version" if version is None else f"version {version + 1}"
    doing = [f"{role} {activity}" for role, activity in record.get("activity", {}).items()]
    return f"waiting for {which}{': ' * bool(doing)}{_named(doing)}"


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
