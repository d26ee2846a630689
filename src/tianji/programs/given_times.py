"""Whether given times (config `times`) fit a run; see balance/times.py for what they are."""

from __future__ import annotations

from tianji.algorithms.interface import Cadence
from tianji.balance.times import Times
from tianji.config.run import RunConfig, TimesConfig
from tianji.errors import UsageError


def check_times(config: RunConfig, cadence: Cadence, num_actors: int) -> None:
    """UsageError where they do not."""
    times = config.times
    if times == TimesConfig():
        return
    if cadence.gather is None:
        raise UsageError(
            f"Given times (times.law = {times.law}, times.network = {times.network}) are for "
            "algorithms that gather gradients, such as rennala-nigt; "
            f"{config.algorithm.name} takes the time that it takes. For other algorithms "
            "`tianji simulate` has --times-actor-s and --times-learner-s."
        )
    if times.law == "none":
        raise UsageError(
            "The times of messages come on top of the times of gradients: give times.law too, "
            "such as --times.law equal."
        )
    if config.engine == "inline":
        raise UsageError(
            "The inline engine lets one actor work after the other, so given times mean nothing "
            "in it. Use --engine virtual (simulated time, as reproducible) or --engine local (real "
            "processes that wait)."
        )
    Times(times, num_actors, num_parameters=1, seed=0)
