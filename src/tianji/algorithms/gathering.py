"""What the records of algorithms that gather gradients share. Imports no torch: the supervisor
reads it."""

from __future__ import annotations

from tianji.config.run import RunConfig
from tianji.errors import UsageError


def num_actors(config: RunConfig) -> int:
    """Return the number of actors; one for each environment before the machine is known."""
    return config.num_envs if config.num_actors == "auto" else config.num_actors


def check_normalize(config: RunConfig) -> None:
    """Raise UsageError if statistics are asked for, which only a learner that sees steps can
    keep."""
    for name in ("observations", "rewards"):
        if getattr(config.normalize, name):
            raise UsageError(
                f"normalize.{name} keeps statistics in the learner, and with "
                f"{config.algorithm.name} the learner sees gradients and no steps. Set it to "
                "false, or wrap the environment (gymnasium.wrappers.TransformObservation, "
                "TransformReward)."
            )
