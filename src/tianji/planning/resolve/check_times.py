"""Check that given times (config `times`, see balance/given_times.py) fit a run."""

from __future__ import annotations

from tianji.algorithms.interface import Cadence, Gather
from tianji.balance.given_times import Times
from tianji.config.advice import advise
from tianji.config.run import RunConfig, TimesConfig
from tianji.errors import UsageError


def check_times(config: RunConfig, cadence: Cadence, num_actors: int) -> None:
    """Raise UsageError if they do not."""
    times = config.times
    if times == TimesConfig():
        return
    if not isinstance(cadence, Gather):
        raise UsageError(
            f"Given times (times.law = {times.law}, times.network = {times.network}) are for "
            "algorithms that gather gradients, such as rennala-nigt; "
            f"{config.algorithm.name} runs at its real speed. For other algorithms "
            "`tianji simulate` has --times-actor-s and --times-learner-s."
        )
    if times.law == "none":
        raise UsageError(
            "times has no law, so its other settings have no effect: gradients and messages take "
            "their real time. Set one, such as --times.law equal, or --times.law given for the "
            "list times.compute."
        )
    if config.engine == "inline":
        raise UsageError(
            "The inline engine runs one actor after the other, so given times have no effect; the "
            "virtual engine simulates them, and real processes wait. "
            f"{advise(config, {'engine': 'virtual'}, {'engine': 'local'})}"
        )
    _check_lists(times)
    Times(times, num_actors, num_parameters=1, seed=0)


def _check_lists(times: TimesConfig) -> None:
    """Refuse a list that the law does not read."""
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
