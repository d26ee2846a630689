"""Reduce: a group of ranks gives one vector each, and all of them get the sum.

    reduce.give(team, rank, values)       # begins; nobody waits in it
    total = reduce.result()               # None until everybody has given; ReduceBroken if one died

The collective is gloo's, over TCP on the loopback interface. It is neither authenticated nor
encrypted. The ranks find each other through a memfd that they have inherited: no file and no port
of its own for that, and nothing is left when the last of them has ended.

A team is a number and its members. When one of them dies, or another one comes, a new team is
made under a new number; what was under way in the old one is let go. Every collective has a thread
of its own, because gloo can only be waited for: a role goes on ticking meanwhile, shows that it is
alive, and sleeps on its bell, which the thread rings.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import distributed

from tianji.errors import TianjiError, UsageError
from tianji.types import Array

_torch: Any = distributed
"""The library's own description of its types leaves out half of what we use."""

CLOSE_S = 1.0
NETWORK_ERRORS = (RuntimeError, OSError, EOFError, ValueError)
"""What gloo, its store and the sockets below raise when a rank is gone or unreachable. Anything
else is a fault of the program."""


class ReduceBroken(TianjiError):
    """A collective has failed: one of the ranks is gone, or did not come in time."""


class Team(NamedTuple):
    """Who takes part: the learner's side as rank 0, then these actors."""

    number: int
    actors: tuple[int, ...]

    @property
    def size(self) -> int:
        return 1 + len(self.actors)


class Call(NamedTuple):
    """What is wanted of a team now: its sums at this version; -1: nothing yet."""

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
        """fd: of the memfd through which ranks find each other.
        timeout_s: the longest that one rank may let the others wait.
        wake: called from another thread, when there is a result.
        """
        if not _torch.is_available() or not _torch.is_gloo_available():
            raise UsageError(
                "This build of torch has no gloo, which algorithm.realisation 'all-reduce' needs. "
                "Use --algorithm.realisation server, or install torch from PyPI."
            )
        self._store = _torch.FileStore(f"/proc/self/fd/{fd}", -1)
        self._timeout = timedelta(seconds=timeout_s)
        self._store.set_timeout(self._timeout)
        self._lock = threading.Lock()
        self._wake = wake
        self._attempt: _Attempt | None = None
        self._let_go: list[_Attempt] = []
        """Of other teams, and still under way."""

    def announce(self, team: Team) -> None:
        """By rank 0, before anybody else knows the number."""
        self._store.set(f"team-{team.number}", json.dumps(team.actors))

    def team(self, number: int) -> Team:
        """One that was announced."""
        return Team(number, tuple(json.loads(self._store.get(f"team-{number}"))))

    def give(self, team: Team, rank: int, values: Array) -> None:
        """Begin a collective. Of those of the same team it is the next; one of another team that is
        still under way is let go."""
        before = self._attempt
        self._let_go = [attempt for attempt in self._let_go if not attempt.is_done]
        if before is not None and before.team != team:
            self._let_go.append(before)
            before = None
        form = partial(self._form, team, rank)
        self._attempt = _Attempt(team, values, before, form, self._ring)

    def _ring(self) -> None:
        with self._lock:  # one that was let go may end at the same time
            self._wake()

    def is_under_way(self) -> bool:
        return self._attempt is not None and not self._attempt.is_done

    def result(self) -> Array | None:
        """What all have given, added up; None as long as somebody has not."""
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
        """Let what is under way come to its end, which it does soon when others end too: a thread
        that comes back from the library while Python shuts down would abort the process."""
        deadline_s = time.monotonic() + CLOSE_S
        for attempt in (*self._let_go, *filter(None, [self._attempt])):
            attempt.join(max(0.0, deadline_s - time.monotonic()))

    def _form(self, team: Team, rank: int) -> Any:
        options = _torch.ProcessGroupGloo._Options()
        options._devices = [_torch.ProcessGroupGloo.create_device(hostname="127.0.0.1")]
        options._timeout = self._timeout
        options._threads = 1
        store = _torch.PrefixStore(f"group-{team.number}", self._store)
        return _torch.ProcessGroupGloo(store, rank, team.size, options)


class _Attempt:
    """One collective. It ends by itself, at the latest after the timeout."""

    def __init__(
        self,
        team: Team,
        values: Array,
        before: _Attempt | None,
        form: Callable[[], Any],
        wake: Callable[[], None],
    ) -> None:
        """before: the one of the same team whose group this one takes over; else it is formed."""
        self.team = team
        self.values = values.copy()
        self.error: str | None = None
        """What failed between the ranks, in words."""
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
            self.error = _in_short(error)
        except BaseException as error:  # noqa: BLE001 - nobody sees what ends this thread
            self.error, self.fault = _in_short(error), error
        finally:
            self._before = None
            self.is_done = True
            self._wake()

    def _hand_over(self) -> Any:
        """The group. It goes to one other alone: where that fails, it is gone, and all see it."""
        self._thread.join()
        group, self._group = self._group, None
        if group is None:
            raise RuntimeError(self.error)
        return group


def _in_short(error: BaseException) -> str:
    """The library's message without the line of its source, and without its advice."""
    text = re.sub(r"^\[[^]]*\] ", "", str(error)).strip() or type(error).__name__
    return text.splitlines()[0].split(". ")[0]
