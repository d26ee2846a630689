"""Reduce: a group of ranks gives one vector each, and all of them get the sum.

    reduce.give(team, rank, values)       # begins, and does not wait
    total = reduce.result()               # None until all have given; ReduceBroken if one died

The collective is gloo's, over TCP on the loopback interface. It is neither authenticated nor
encrypted. The ranks find each other through an inherited memfd, which needs no file and no port,
and is gone when the last of them has ended.

A team is a number and its members. When a member dies or another actor comes, a new team with a new
number is made, and collectives of the old one are abandoned. Every collective has its own thread,
because gloo only has a blocking wait: the role continues to tick and to send heartbeats, and sleeps
on its bell, which the thread rings.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch

from tianji.channels.peers.gloo import (
    NETWORK_ERRORS,
    form_group,
    has_gloo,
    in_short,
    named,
    open_store,
)
from tianji.errors import ReduceBroken, UsageError
from tianji.types import Array

CLOSE_S = 1.0


class Team(NamedTuple):
    """The members: the learner's side as rank 0, then these actors."""

    number: int
    actors: tuple[int, ...]

    @property
    def size(self) -> int:
        return 1 + len(self.actors)


class Call(NamedTuple):
    """A request to a team for its sums at this version; -1: none yet."""

    team: int
    version: int

    def to_word(self) -> int:
        return self.team << 32 | self.version + 1

    @staticmethod
    def of_word(word: int) -> Call:
        return Call(word >> 32, (word & 0xFFFF_FFFF) - 1)


class GlooReduce:
    """One rank's end."""

    def __init__(self, fd: int, timeout_s: float, wake: Callable[[], None]) -> None:
        """fd: the memfd through which ranks find each other.
        timeout_s: the longest time that one rank may make the others wait.
        wake: called from another thread when there is a result.
        """
        if not has_gloo():
            raise UsageError(
                "This build of torch has no gloo, which algorithm.realisation 'all-reduce' needs. "
                "Use --algorithm.realisation server, or install torch from PyPI."
            )
        self._store = open_store(fd, timeout_s)
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._wake = wake
        self._attempt: _Attempt | None = None
        self._abandoned: list[_Attempt] = []
        """Unfinished collectives of other teams."""

    def announce(self, team: Team) -> None:
        """Store the members of a team. Rank 0 does it before any other rank knows the number."""
        self._store.set(f"team-{team.number}", json.dumps(team.actors))

    def team(self, number: int) -> Team:
        """Return a team that was announced."""
        return Team(number, tuple(json.loads(self._store.get(f"team-{number}"))))

    def give(self, team: Team, rank: int, values: Array) -> None:
        """Begin the next collective of a team. An unfinished one of another team is abandoned."""
        before = self._attempt
        self._abandoned = [attempt for attempt in self._abandoned if not attempt.is_done]
        if before is not None and before.team != team:
            self._abandoned.append(before)
            before = None
        form = partial(self._form, team, rank)
        self._attempt = _Attempt(team, values, before, form, self._ring)

    def _ring(self) -> None:
        with self._lock:  # an abandoned one may end at the same time
            self._wake()

    def is_under_way(self) -> bool:
        return self._attempt is not None and not self._attempt.is_done

    def result(self) -> Array | None:
        """Return the sum of what all ranks have given; None until all have."""
        attempt = self._attempt
        if attempt is None or not attempt.is_done:
            return None
        if attempt.fault is not None:
            raise attempt.fault
        if attempt.error is not None:
            raise ReduceBroken(
                f"The all-reduce of {attempt.team.size} ranks has failed: {attempt.error}."
            )
        return attempt.values

    def close(self) -> None:
        """Wait for unfinished collectives, up to CLOSE_S: a thread that returns from the library
        while Python shuts down would abort the process."""
        deadline_s = time.monotonic() + CLOSE_S
        for attempt in (*self._abandoned, *filter(None, [self._attempt])):
            attempt.join(max(0.0, deadline_s - time.monotonic()))

    def _form(self, team: Team, rank: int) -> Any:
        store = named(self._store, f"group-{team.number}")
        return form_group(store, rank, team.size, self._timeout_s)


class _Attempt:
    """One collective. It ends at the latest after the timeout."""

    def __init__(
        self,
        team: Team,
        values: Array,
        before: _Attempt | None,
        form: Callable[[], Any],
        wake: Callable[[], None],
    ) -> None:
        """before: the collective of the same team whose group this one takes over, if any."""
        self.team = team
        self.values = values.copy()
        self.error: str | None = None
        """The error between the ranks, in words."""
        self.fault: BaseException | None = None
        """An error of the program, which the role raises in its own thread."""
        self.is_done = False
        self._group: Any = None
        self._before = before
        self._form = form
        self._wake = wake
        self._thread = threading.Thread(target=self._run, name="reduce", daemon=True)
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            group = self._form() if self._before is None else self._before._hand_over()
            group.allreduce([torch.from_numpy(self.values)]).wait()
            self._group = group
        except NETWORK_ERRORS as error:
            self.error = in_short(error)
        except BaseException as error:  # noqa: BLE001 - the role raises it in its own thread
            self.error, self.fault = in_short(error), error
        finally:
            self._before = None
            self.is_done = True
            self._wake()

    def _hand_over(self) -> Any:
        """Return the group to the next collective, and keep no reference to it."""
        self._thread.join()
        group, self._group = self._group, None
        if group is None:
            raise RuntimeError(self.error)
        return group
