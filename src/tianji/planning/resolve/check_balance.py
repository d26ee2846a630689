"""Check that the balance of a run (config `balance`, see buffer/) fits it."""

from __future__ import annotations

from tianji.algorithms.interface import Cadence, Gather, QueueCadence, ReplayCadence
from tianji.config.advice import advise
from tianji.config.run import LimiterConfig, RunConfig
from tianji.config.settings import ALGORITHM_NAME
from tianji.errors import UsageError

PACED = {"balance": "paced"}
INLINE = {"engine": "inline"}
SOME_LAG = {"max_lag": 1}


def check_balance(config: RunConfig, cadence: Cadence) -> None:
    """Raise UsageError if it does not."""
    if config.balance not in ("blocking", "dropping") and config.queue_size != "auto":
        queues = {"balance": "blocking"}, {"balance": "dropping"}
        raise UsageError(
            f"queue_size is {config.queue_size}, and balance is '{config.balance}', which has no "
            f"queue of fixed size. {advise(config, *queues, or_else='leave queue_size out')}"
        )
    if config.balance != "limiter" and config.limiter != LimiterConfig():
        raise UsageError(
            f"limiter has settings, and balance is '{config.balance}', which has no rate limiter. "
            f"{advise(config, {'balance': 'limiter'}, or_else='leave them out')}"
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
            "never waits would have nothing to learn from. "
            f"{advise(config, PACED, *_named('dqn', 'apex'))}"
        )
    if config.max_lag == 0:
        raise UsageError(
            "balance is 'free', and max_lag is 0: with max_lag 0 actors and learner take turns, "
            f"with a free balance neither waits. {advise(config, PACED, SOME_LAG)}"
        )
    _check_no_target(config, "where neither side waits")


def _check_bounded(config: RunConfig, cadence: Cadence) -> None:
    if not isinstance(cadence, QueueCadence):
        raise UsageError(
            f"balance is '{config.balance}', which puts a queue of fixed size between actors and "
            f"learner, and {config.algorithm.name} does not learn from a queue. "
            f"{advise(config, PACED, *_named('ppo', 'impala'))}"
        )
    if config.max_lag == 0 and config.engine != "inline":
        raise UsageError(
            f"balance is '{config.balance}', and max_lag is 0: actors fill the queue while the "
            f"learner trains, so that there is lag. {advise(config, PACED, SOME_LAG, INLINE)}"
        )
    _check_no_target(config, "with a queue of fixed size")


def _check_limited(config: RunConfig, cadence: Cadence) -> None:
    if isinstance(cadence, Gather):
        raise UsageError(
            f"balance is 'limiter', and {config.algorithm.name} gathers gradients, which are not "
            f"kept in a store. {advise(config, PACED, *_named('ppo', 'impala', 'dqn'))}"
        )
    if isinstance(cadence, QueueCadence) and cadence.pool_batches > 1:
        raise UsageError(
            "balance is 'limiter', and batches are drawn from a pool of several: the limiter is "
            f"for queues and replay stores. {advise(config, PACED, or_else='a pool of one batch')}"
        )
    if config.max_lag == 0 and config.engine != "inline":
        raise UsageError(
            "balance is 'limiter', and max_lag is 0: actors insert while the learner trains, so "
            f"that there is lag. {advise(config, PACED, SOME_LAG, INLINE)}"
        )
    _check_no_target(config, "and from the limiter's window")


def _check_no_target(config: RunConfig, where: str) -> None:
    if config.lag_target != "auto":
        raise UsageError(
            f"balance is '{config.balance}', and lag_target is {config.lag_target}: the lag "
            f"follows from the speeds {where}. "
            f"{advise(config, PACED, or_else='leave lag_target out')}"
        )


def _named(*algorithms: str) -> list[dict[str, str]]:
    return [{ALGORITHM_NAME: name} for name in algorithms]
