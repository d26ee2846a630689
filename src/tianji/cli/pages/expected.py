"""What to expect of a run, where the zoo has a preset for its environment and algorithm."""

from __future__ import annotations

from tianji.config.overrides import resolve
from tianji.config.run import RunConfig
from tianji.zoo.evidence import evidence_for, expectation

LEARNS_WITH = (
    "env_kwargs", "algorithm", "model", "normalize", "num_envs", "max_lag", "style",
)  # fmt: skip
"""Settings that what is reached depends on."""


def expected(config: RunConfig) -> str:
    """Return what the preset has reached, and whether the run has its settings; empty where nobody
    has measured one."""
    row = evidence_for(config.env, config.algorithm.name)
    if row is None:
        return ""
    own = resolve(row["preset"], ()).config
    if all(getattr(config, name) == getattr(own, name) for name in LEARNS_WITH):
        return expectation(row)
    return (
        f"{expectation(row)} That was with its own settings; those of this run are others. "
        f"`tianji train {row['preset']}` uses them."
    )
