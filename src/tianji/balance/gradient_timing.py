"""Gradients that take a given time: when each one is due.

An actor that is done earlier holds its gradient until it is due; one that is later is not slowed
down further. Under the virtual clock the due time is the time at which the gradient is done.
"""

from __future__ import annotations

from collections.abc import Mapping

from tianji.algorithms.interface import Rule
from tianji.balance.given_times import Times

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
