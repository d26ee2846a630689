"""Check that the balance of a run (config `balance`, see buffer/) fits it."""

from __future__ import annotations

from tianji.algorithms.interface import Cadence, Gather, QueueCadence, ReplayCadence
from tianji.config.run import LimiterConfig, RunConfig
from tianji.errors import UsageError


def check_balance(config: RunConfig, cadence: Cadence) -> None:
    """Raise UsageError if it does not."""
    if config.balance not in ("blocking", "dropping") and config.queue_size != "auto":
        raise UsageError(
            f"queue_size is {config.queue_size}, and balance is '{config.balance}', which has no "
            "queue of fixed size. Use --balance blocking or dropping, or leave queue_size out."
        )
    if config.balance != "limiter" and config.limiter != LimiterConfig():
        raise UsageError(
            f"limiter has settings, and balance is '{config.balance}', which has no rate limiter. "
            "Use --balance limiter, or leave them out."
        )
    match config.balance:
        case "free":
            _check_free(config, cadence)
        case "blocking" | "dropping":
            _check_bounded(config, cadence)
        case "limiter":
            _check_limited(config, cadence)


def _check_free(config: RunConfig, cadence: Cadence) -> None:
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
    _check_no_target(config, "where neither side waits")


def _check_bounded(config: RunConfig, cadence: Cadence) -> None:
    if not isinstance(cadence, QueueCadence):
        raise UsageError(
            f"balance is '{config.balance}', which puts a queue of fixed size between actors and "
            f"learner, and {config.algorithm.name} does not learn from a queue. Use --balance "
            "paced, or ppo or impala."
        )
    if config.max_lag == 0 and config.engine != "inline":
        raise UsageError(
            f"balance is '{config.balance}', and max_lag is 0: actors fill the queue while the "
            "learner trains, so that there is lag. Use --balance paced, or --engine inline."
        )
    _check_no_target(config, "with a queue of fixed size")


def _check_limited(config: RunConfig, cadence: Cadence) -> None:
    if isinstance(cadence, Gather):
        raise UsageError(
            f"balance is 'limiter', and {config.algorithm.name} gathers gradients, which are not "
            "kept in a store. Use --balance paced, or an algorithm such as ppo, impala or dqn."
        )
    if isinstance(cadence, QueueCadence) and cadence.pool_batches > 1:
        raise UsageError(
            "balance is 'limiter', and batches are drawn from a pool of several: the limiter is "
            "for queues and replay stores. Use --balance paced, or a pool of one batch."
        )
    if config.max_lag == 0 and config.engine != "inline":
        raise UsageError(
            "balance is 'limiter', and max_lag is 0: actors insert while the learner trains, so "
            "that there is lag. Use --balance paced, or --engine inline."
        )
    _check_no_target(config, "and from the limiter's window")


def _check_no_target(config: RunConfig, where: str) -> None:
    if config.lag_target != "auto":
        raise UsageError(
            f"balance is '{config.balance}', and lag_target is {config.lag_target}: the lag "
            f"follows from the speeds {where}. Use --balance paced, or leave lag_target out."
        )
