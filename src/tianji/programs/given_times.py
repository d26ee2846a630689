"""Whether given times (config `times`) fit a run; see balance/times.py for what they are."""

from __future__ import annotations

from tianji.algorithms.interface import Cadence, Gather
from tianji.balance.times import Times
from tianji.config.run import RunConfig, TimesConfig
from tianji.errors import UsageError


def check_times(config: RunConfig, cadence: Cadence, num_actors: int) -> None:
    """UsageError where they do not."""
    times = config.times
    if times == TimesConfig():
        return
    if not isinstance(cadence, Gather):
        raise UsageError(
            f"Given times (times.law = {times.law}, times.network = {times.network}) are for "
            "algorithms that gather gradients, such as rennala-nigt; "
            f"{config.algorithm.name} takes the time that it takes. For other algorithms "
            "`tianji simulate` has --times-actor-s and --times-learner-s."
        )
    if times.law == "none":
        raise UsageError(
            "times says more, but no times.law, and without one gradients and messages take the "
            "time that they take. Give one, such as --times.law equal, or --times.law given for "
            "the list times.compute."
        )
    if config.engine == "inline":
        raise UsageError(
            "The inline engine lets one actor work after the other, so given times mean nothing "
            "in it. Use --engine virtual (simulated time, as reproducible) or --engine local (real "
            "processes that wait)."
        )
    _check_lists(times)
    Times(times, num_actors, num_parameters=1, seed=0)


def _check_lists(times: TimesConfig) -> None:
    """A list that nothing reads was meant to be read."""
    if times.compute and times.law != "given":
        raise UsageError(
            f"times.compute has a list, but times.law = {times.law} does not read it. Use "
            "--times.law given, or leave the list out."
        )
    if times.communicate and times.network != "given":
        raise UsageError(
            f"times.communicate has a list, but times.network = {times.network} does not read it. "
            "Use --times.network given, or leave the list out."
        )
