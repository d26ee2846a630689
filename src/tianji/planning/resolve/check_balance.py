"""Check that a free balance (config `balance`, see buffer/free_running.py) fits a run."""

from __future__ import annotations

from tianji.algorithms.interface import Cadence, ReplayCadence
from tianji.config.run import RunConfig
from tianji.errors import UsageError


def check_balance(config: RunConfig, cadence: Cadence) -> None:
    """Raise UsageError if it does not."""
    if config.balance == "paced":
        return
    if not isinstance(cadence, ReplayCadence):
        raise UsageError(
            f"balance is 'free', and {config.algorithm.name} has no replay store: a learner that "
            "never waits would have nothing to learn from. Use --balance paced, or dqn or apex."
        )
    if config.max_lag == 0:
        raise UsageError(
            "balance is 'free', and max_lag is 0: with max_lag 0 actors and learner take turns, "
            "with a free balance neither waits. Use --balance paced, or --max-lag 1."
        )
    if config.lag_target != "auto":
        raise UsageError(
            f"balance is 'free', and lag_target is {config.lag_target}: the lag follows from the "
            "speeds where neither side waits. Use --balance paced, or leave lag_target out."
        )
