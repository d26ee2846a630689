"""A record of metrics as flat scalars, named `room/quantity_unit`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

from tianji.observe.account import to_account
from tianji.records import Metrics

_SINGLE = {
    "mean_return_100": "actor/mean_return_100",
    "episodes": "actor/episodes",
    "updates": "learner/updates",
    "version": "learner/version",
    "env_failures": "actor/env_failures",
    "restarts": "supervisor/restarts",
    "discarded_items": "buffer/discarded_items",
    "wall_s": "supervisor/wall_s",
}
_GROUPS = {
    "rates_per_s": {
        "produced": "actor/produced_steps_per_s",
        "received": "buffer/received_steps_per_s",
        "trained": "learner/trained_steps_per_s",
        "unique_trained": "learner/unique_trained_steps_per_s",
    },
    "lag_versions": {
        "mean": "buffer/lag_mean_versions",
        "p95": "buffer/lag_p95_versions",
        "max": "buffer/lag_max_versions",
    },
    "gather": {
        "rounds_per_s": "learner/rounds_per_s",
        "gradients_per_s": "actor/gradients_per_s",
        "discarded_share": "actor/discarded_gradient_share",
        "discarded_step_share": "actor/discarded_step_share",
    },
    "ratio": {"target": "buffer/ratio_target", "actual": "buffer/ratio_actual"},
}
_PER_ROLE = ("busy_share", "paced_share", "rss_bytes")
_ROOMS = {"learner": "learner", "evaluation": "evaluator"}
"""Groups of metrics whose names come from where they are made."""


def to_scalars(record: Metrics) -> dict[str, float]:
    """Return every finite number of a record that has a name here.

    >>> to_scalars({**NO_METRICS, "busy_share": {"actor-0": 0.5}})["actor-0/busy_share"]
    0.5
    """
    whole: Mapping[str, Any] = record
    found: dict[str, Any] = {name: whole[key] for key, name in _SINGLE.items()}
    for group, names in _GROUPS.items():
        found |= {name: whole.get(group, {}).get(key) for key, name in names.items()}
    for quantity in _PER_ROLE:
        found |= {f"{role}/{quantity}": value for role, value in whole[quantity].items()}
    by_env = record["returns_by_env"].items()
    found |= {f"actor/mean_return_100/{name}": value for name, value in by_env}
    found |= _time_scalars(record)
    for group, room in _ROOMS.items():
        found |= {f"{room}/{key}": value for key, value in whole.get(group, {}).items()}
    return {
        name: float(value)
        for name, value in found.items()
        if isinstance(value, Real) and math.isfinite(value)
    }


def _time_scalars(record: Metrics) -> dict[str, float]:
    """Return where the time went, as shares: of the learner's worker, and of the mean actor."""
    account = to_account(record)
    if account is None:
        return {}
    found: dict[str, float] = {}
    for room, side in (("actor", account.actors), ("learner", account.learner)):
        found |= {f"{room}/{part}_share": share for part, share in side.parts.items()}
        found |= {f"{room}/wait_{cause}_share": share for cause, share in side.waits.items()}
    return found
