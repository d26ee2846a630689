"""What to expect of a run, where the zoo has a preset for its environment and algorithm."""

from __future__ import annotations

from typing import Any

from tianji.config.overrides import resolve
from tianji.config.run import RunConfig
from tianji.config.schema import flat
from tianji.zoo.evidence import evidence_for, expectation

OTHERS = frozenset({
    "run", "engine", "ray_address", "seed", "actor_hosts", "num_actors", "learner_threads",
    "actor_threads", "emulator_threads", "device", "inference", "target_return", "max_env_steps",
    "max_wall_s", "checkpoint", "evaluate", "observe", "callbacks", "supervise", "plan",
})  # fmt: skip
"""Settings of the machine, the limits and the output; what is reached depends on all others."""
PLACE = "algorithm.replay_on"
"""A setting of the machine among those of an algorithm."""


def expected(config: RunConfig) -> str:
    """Return what the preset has reached, and whether the run has its settings; empty where nobody
    has measured one."""
    row = evidence_for(config.env, config.algorithm.name)
    if row is None:
        return ""
    own = resolve(row["preset"], ()).config
    if _learns_with(config) == _learns_with(own):
        return expectation(row)
    return (
        f"{expectation(row)} That was with its own settings; those of this run are others. "
        f"`tianji train {row['preset']}` uses them."
    )


def _learns_with(config: RunConfig) -> dict[str, Any]:
    found = flat(config.model_dump(mode="json", exclude=set(OTHERS)))
    return {path: value for path, value in found.items() if path != PLACE}
