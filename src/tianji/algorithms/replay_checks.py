"""Checks that all algorithms with a replay store share. No torch: the supervisor reads this."""

from __future__ import annotations

from tianji.config.run import RunConfig
from tianji.errors import UsageError


def check_replay(config: RunConfig, name: str, replay_size: int, warmup_steps: int) -> None:
    """Raise UsageError for settings that no replay store works with. name: as people write it."""
    if config.normalize.rewards:
        raise UsageError(
            f"normalize.rewards follows returns through whole unrolls, and {name} learns from "
            "single transitions. Set it to false, and scale large rewards in the environment "
            "(gymnasium.wrappers.TransformReward)."
        )
    if warmup_steps > replay_size:
        raise UsageError(
            f"warmup_steps {warmup_steps} is more than replay_size {replay_size}: the first update "
            "would never come. Raise replay_size."
        )
    per_round = config.num_envs * config.algorithm.unroll_length
    if replay_size < per_round:
        raise UsageError(
            f"replay_size {replay_size} is less than one round of unrolls: num_envs "
            f"{config.num_envs} * unroll_length {config.algorithm.unroll_length} = {per_round} "
            "steps. Raise replay_size."
        )
