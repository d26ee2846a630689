"""A task that nobody works on any more."""

from __future__ import annotations

from collections.abc import Collection

from tianji.config.run import RunConfig


def lost_task(config: RunConfig, actors: Collection[int]) -> str | None:
    """One that none of these actors has; None where all have one, and where the person has said
    that the run may go on without an actor."""
    if getattr(config.algorithm, "absent_after_s", None) is not None:
        return None
    kept = {actor % len(config.tasks) for actor in actors}
    return next((task for i, task in enumerate(config.tasks) if i not in kept), None)
