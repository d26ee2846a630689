"""What a run that makes no progress waits for, in words."""

from __future__ import annotations

from tianji.records import Metrics
from tianji.wording import listed

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


def silent_roles(record: Metrics, limit_s: float) -> str:
    """Name the roles that have been silent for a while, and what they are doing; else nothing.

    limit_s: the silence after which a role is restarted (supervise.heartbeat_timeout_s).
    """
    activities = record["activity"]
    silent = {role: s for role, s in record.get("silent_s", {}).items() if s >= SILENT_S}
    if not silent:
        return ""
    first = max(silent, key=lambda role: silent[role])
    activity = activities.get(first, "")
    alike = [role for role in silent if activities.get(role, "") == activity]
    what = _WHAT.get(activity, f"no sign of life while {activity}")
    told = f"{listed(alike, _MOST_NAMED)}: {what} for {silent[first]:.0f} s"
    if activity != "acting":
        return told
    return f"{told}; restart after {limit_s:g} s (supervise.heartbeat_timeout_s)"


def next_version(record: Metrics) -> str:
    """Name the version that all roles work on, and what each is doing."""
    doing = [f"{role} {activity}" for role, activity in record["activity"].items()]
    which = f"version {record['version'] + 1}"
    return f"{which}: {listed(doing, _MOST_NAMED)}" if doing else which
