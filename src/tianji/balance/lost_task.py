"""Find a task that no actor works on any more."""

from __future__ import annotations

from collections.abc import Collection

from tianji.config.run import RunConfig


def lost_task(config: RunConfig, actors: Collection[int]) -> str | None:
    """Return a task that none of these actors has, if there is one.

    None if the person has allowed the run to continue without an actor (absent_after_s).
    """
    if getattr(config.algorithm, "absent_after_s", None) is not None:
        return None
    kept = {actor % len(config.tasks) for actor in actors}
    return next((task for i, task in enumerate(config.tasks) if i not in kept), None)
