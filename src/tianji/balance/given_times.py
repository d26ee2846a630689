"""Given times: the durations of gradients and messages of each actor, by a law.

Pure functions of actor, gradient and time, so that every engine and every method sees the same
durations. Actors are counted from 0 here; i = actor + 1 in the laws. Messages cost time in two
ways: if sums are collected once per version, the slowest message counts after the round is closed
(closing_s); if every gradient is sent by itself, one message counts with each (communicate_s).

`Timing` says when each gradient of an actor is due. An actor that is done earlier holds its
gradient until it is due; one that is later is not slowed down further. Under the virtual clock the
due time is the time at which the gradient is done.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from struct import pack

from tianji.algorithms.interface import Rule
from tianji.config.run import TimesConfig
from tianji.errors import UsageError

CHANGE_UNITS = 20.0  # the law `changing` reverses this often: a few versions at usual sizes
SHORTEST_S, LONGEST_S = 1e-9, 1e9


class Times:
    """The durations of all actors of a run. The law `none` counts as `equal`.

    >>> Times(TimesConfig(law="sqrt"), 10, num_parameters=0, seed=1).compute_s(3, 0, 0.0, 1)
    2.0
    """

    def __init__(
        self, config: TimesConfig, num_actors: int, num_parameters: int, seed: int
    ) -> None:
        """num_parameters: for the network `sqrt-size`; seed: for the law `random`."""
        self.config = config
        self._seed = seed
        self._compute_s = _in_seconds(_compute_units(config, num_actors), config)
        self._communicate_s = _in_seconds(
            _communicate_units(config, num_actors, num_parameters), config
        )
        self._turns = config.law == "changing"
        self._is_random = config.law == "random"
        self._turn_s = CHANGE_UNITS * config.unit_s
        self._per_step = config.per == "step"

    def compute_s(self, actor: int, index: int, now_s: float, num_steps: int) -> float:
        """Return the duration of gradient `index` of this actor, begun at now_s."""
        if self._turns and int(now_s / self._turn_s) % 2:
            actor = len(self._compute_s) - 1 - actor
        usual_s = self.usual_s(actor, num_steps)
        return usual_s * _drawn(self._seed, actor, index) if self._is_random else usual_s

    def usual_s(self, actor: int, num_steps: int) -> float:
        """Return the mean of random durations, and the first of durations that change."""
        return self._compute_s[actor] * (num_steps if self._per_step else 1)

    def communicate_s(self, actor: int) -> float:
        """Return the duration of one message of this actor."""
        return self._communicate_s[actor]

    def closing_s(self) -> float:
        """Return the time from closing a round to the next version, if sums are collected once."""
        return max(self._communicate_s)


def _compute_units(config: TimesConfig, num_actors: int) -> Sequence[float]:
    if config.law == "given":
        return _fitting(config.compute, num_actors, "compute")
    if config.law in ("none", "equal"):
        return [1.0] * num_actors
    if config.law == "straggler":
        return [1.0] * (num_actors - 1) + [config.slowest]
    return _square_roots(num_actors)


def _communicate_units(
    config: TimesConfig, num_actors: int, num_parameters: int
) -> Sequence[float]:
    if config.network == "given":
        return _fitting(config.communicate, num_actors, "communicate")
    if config.network == "none":
        return [0.0] * num_actors
    if config.network == "equal":
        return [1.0] * num_actors
    factor = num_parameters**0.25 if config.network == "sqrt-size" else 1.0
    return [factor * root for root in _square_roots(num_actors)]


def _square_roots(num_actors: int) -> list[float]:
    return [math.sqrt(i) for i in range(1, num_actors + 1)]


def _fitting(listed: Sequence[float], num_actors: int, name: str) -> Sequence[float]:
    if len(listed) != num_actors:
        raise UsageError(
            f"times.{name} has {len(listed)} numbers, but there are {num_actors} actors: give one "
            f"for each, such as --times.{name} {','.join(['1'] * min(num_actors, 4))}"
            f"{',...' if num_actors > 4 else ''}, or ask for as many actors as there are numbers."
        )
    return listed


def _in_seconds(units: Sequence[float], config: TimesConfig) -> list[float]:
    """Raise UsageError if a clock of whole nanoseconds would stop or overflow."""
    seconds = [unit * config.unit_s for unit in units]
    for second in seconds:
        if second and not SHORTEST_S <= second <= LONGEST_S:
            raise UsageError(
                f"A given time is {second:g} s (times.unit_s is {config.unit_s:g} s); given times "
                f"must be from {SHORTEST_S:g} to {LONGEST_S:g} s. Change times.unit_s or the list."
            )
    return seconds


def _drawn(seed: int, actor: int, index: int) -> float:
    """Return an exponential number of mean 1 that depends only on the arguments."""
    digest = blake2b(pack("<Qqq", seed, actor, index), digest_size=8).digest()
    share = (int.from_bytes(digest, "little") >> 11) / 2**53
    return -math.log1p(-share)


# Rules under which every gradient is sent by itself. Under the others sums are collected once, when
# the round is closed.
_ONE_BY_ONE = ("barrier", "every")


def closing_s(times: Times, rule: Rule) -> float:
    """Return the time from closing a round to its version."""
    return 0.0 if rule in _ONE_BY_ONE else times.closing_s()


class Timing:
    """The due times of one actor's gradients.

    timing.begin(version, now_ns, since_ns)   # a gradient begins
    due_ns = timing.due_ns(num_rows)          # when it may be handed over
    """

    def __init__(
        self,
        times: Times,
        actor: int,
        rule: Rule,
    ) -> None:
        self._times = times
        self._actor = actor
        self._message_s = times.communicate_s(actor) if rule in _ONE_BY_ONE else 0.0
        self._goes_on = rule == "every"
        self._index = -1
        self._before_ns = 0  # how long the actor had run before a resume
        self._version = -1
        self._run_s = self._each_s = 0.0
        self._began_ns = self._base_ns = self._due_ns = self._number = 0

    def begin(self, version: int, now_ns: int, since_ns: int) -> None:
        """since_ns: the beginning of the actor's first gradient."""
        if version != self._version and not self._goes_on:
            self._due_ns = 0  # all actors begin a version at the same time
        self._version = version
        self._began_ns = now_ns
        self._run_s = (self._before_ns + now_ns - since_ns) / 1e9
        self._index += 1

    def state(self, now_ns: int, since_ns: int, has_begun: bool) -> dict[str, int]:
        """Return the state when a version begins; times as in begin().

        has_begun: a gradient of that version has begun; a resume begins it again.
        """
        run_ns = self._before_ns + now_ns - since_ns
        return {"index": self._index - has_begun, "run_ns": run_ns}

    def load_state(self, state: Mapping[str, int]) -> None:
        """Restore the state, before the first gradient."""
        self._index, self._before_ns = state["index"], state["run_ns"]

    def due_ns(self, num_rows: int) -> int:
        """Return when the gradient is due; called once for each.

        k gradients in a row are due after k times h, rounded once: two actors that are done at the
        same time by the law are done in the same nanosecond.
        """
        compute_s = self._times.compute_s(self._actor, self._index, self._run_s, num_rows)
        each_s = compute_s + self._message_s
        if self._began_ns != self._due_ns or each_s != self._each_s:
            self._base_ns, self._each_s, self._number = self._began_ns, each_s, 0
        self._number += 1
        self._due_ns = self._base_ns + round(self._number * each_s * 1e9)
        return self._due_ns
