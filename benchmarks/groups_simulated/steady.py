"""The rate of a run once all of its groups work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SETTLE_S = 2.0
"""Time after the first versions of the slowest group."""
SETTLE_VERSIONS = 2


def steady_rate(
    records: Sequence[Mapping[str, Any]], num_groups: int, steps_per_version: int
) -> float:
    """Return the environment steps per second that the buffers received, from the time on at which
    every group has made some versions.

    records: lines of metrics.jsonl.
    """
    enough = SETTLE_VERSIONS * steps_per_version
    working = [record for record in records if _fewest_steps(record, num_groups) >= enough]
    if not working:
        raise ValueError("the run was too short: not all groups have begun")
    steady = [r for r in working if r["wall_s"] >= working[0]["wall_s"] + SETTLE_S]
    if len(steady) < 2:
        raise ValueError("the run was too short to be steady")
    first, last = steady[0], steady[-1]
    steps: float = last["env_steps"] - first["env_steps"]
    return steps / (last["wall_s"] - first["wall_s"])


def _fewest_steps(record: Mapping[str, Any], num_groups: int) -> int:
    """Return the steps of the group that has the fewest."""
    if num_groups == 1:
        return int(record["env_steps"])
    groups = record.get("groups") or []
    if len(groups) < num_groups:
        return 0
    return min(int(group["env_steps"]) for group in groups)
