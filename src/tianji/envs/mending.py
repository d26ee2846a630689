"""Replaces an environment that fails, while the other environments of its actor continue.

mend = Mending(make, on_failure)
env, observation = mend(index, env, error, seed, step)     # the new one and its first observation

EnvFailures, an actor's `on_failure`, counts such failures and reports them, not too often.
"""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np

from tianji.channels.gauges import Gauge
from tianji.channels.reports import Reports
from tianji.errors import EnvironmentFailed, TianjiError
from tianji.raised import error_in_words
from tianji.reports import Event
from tianji.types import Clock

MAX_IN_A_ROW = 3
"""Failures of one environment in quick succession that are mended."""
SOON_STEPS = 100
"""Two failures with fewer steps than this between them follow in quick succession."""


OnFailure: TypeAlias = Callable[[int, Exception], None]
"""Takes the index of an environment that failed within its actor, and its error."""
TELL_PERIOD_NS = 60 * 10**9
"""Shortest time between two reports about one actor's environments."""


class Mending:
    """Replaces failed environments and counts the failures of each."""

    def __init__(self, make: Callable[[], gym.Env[Any, Any]], on_failure: OnFailure) -> None:
        self._make = make
        self._on_failure = on_failure
        self._count: dict[int, int] = {}
        self._in_a_row: dict[int, int] = {}
        self._failed_at: dict[int, int] = {}

    def __call__(
        self, index: int, env: gym.Env[Any, Any], error: Exception, seed: int, step: int
    ) -> tuple[gym.Env[Any, Any], Any]:
        """Return a new environment and its first observation.

        seed: the failed environment's seed. The new one gets another, so that it does not fail in
        the same way. step: the number of steps that the actor has made. Raises EnvironmentFailed
        if the environment keeps failing.
        """
        if isinstance(error, TianjiError):
            raise error  # a new environment would raise it too
        self._note(index, error, step)
        with contextlib.suppress(Exception):  # close() of a broken environment may raise too
            env.close()
        key = (index, self._count[index])
        new_seed = int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1)[0]) >> 2
        try:
            fresh = self._make()
            observation, _ = fresh.reset(seed=new_seed)
        except Exception as second:
            raise EnvironmentFailed(
                f"Environment {index} of this actor failed ({error_in_words(error)}), and its "
                f"replacement failed in its first reset ({error_in_words(second)})."
            ) from second
        self._on_failure(index, error)
        return fresh, observation

    def _note(self, index: int, error: Exception, step: int) -> None:
        self._count[index] = self._count.get(index, 0) + 1
        is_soon = step - self._failed_at.get(index, -SOON_STEPS) < SOON_STEPS
        self._failed_at[index] = step
        self._in_a_row[index] = self._in_a_row.get(index, 0) + 1 if is_soon else 1
        if self._in_a_row[index] > MAX_IN_A_ROW:
            raise EnvironmentFailed(
                f"Environment {index} of this actor failed {self._in_a_row[index]} times, each "
                f"time within {SOON_STEPS} steps of the failure before: {error_in_words(error)}."
            ) from error


class EnvFailures:
    """Counts every replaced environment; reports the first, and later ones together."""

    def __init__(
        self,
        role: str,
        num_envs: int,
        gauges: memoryview[int],
        reports: Reports,
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        self._role = role
        self._num_envs = num_envs
        self._gauges = gauges
        self._reports = reports
        self._now_ns = now_ns
        self._untold = 0
        self._tell_ns: int | None = None
        """Earliest time of the next report; None: nothing was reported yet."""

    def __call__(self, index: int, error: Exception) -> None:
        self._gauges[Gauge.ENV_FAILURES] += 1
        self._untold += 1
        is_first, now_ns = self._tell_ns is None, self._now_ns()
        if self._tell_ns is not None and now_ns < self._tell_ns:
            return
        self._tell_ns = now_ns + TELL_PERIOD_NS
        report = Event(kind="env_failure", role=self._role, text=self._in_words(index, error))
        if is_first:
            report["traceback"] = "".join(traceback.format_exception(error))
        self._reports(report)
        self._untold = 0

    def _in_words(self, index: int, error: Exception) -> str:
        total = self._gauges[Gauge.ENV_FAILURES]
        times = f" ({self._untold} failures since the last message)" if self._untold > 1 else ""
        return (
            f"Environment {index} of {self._num_envs} failed: {error_in_words(error)}. A "
            f"new one took its place and its episode was cut{times}. Failures in all: {total}."
        )
