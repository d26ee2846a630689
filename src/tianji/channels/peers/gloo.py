"""Peers between processes: gloo's collectives, over TCP on the loopback interface.

They are neither authenticated nor encrypted. The ranks find each other through a store: on one host
an inherited memfd, which needs no file and no port, and is gone when the last of them has ended.

A tensor on a GPU is added up in host memory. NCCL would save the two copies where every rank has a
GPU of its own; it is not built.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from torch import Tensor, distributed

from tianji.errors import ReduceBroken, UsageError

_torch: Any = distributed
"""Untyped: the library's type stubs lack half of what is used here."""

LOOPBACK = "127.0.0.1"
LIFE_S = 0.25
"""A rank that waits for others shows this often that it is alive."""
POLL_S = 0.02
"""A rank that waits for others to start looks this often."""
MEET_S = 120.0
"""Ranks start within this time: they load libraries, and record graphs on a GPU."""
NETWORK_ERRORS = (RuntimeError, OSError, EOFError, ValueError)
"""Errors of gloo, its store and its sockets when a rank is gone or unreachable. Any other error is
a bug."""


def has_gloo() -> bool:
    """Return whether this build of torch has gloo."""
    return bool(_torch.is_available() and _torch.is_gloo_available())


def open_store(fd: int, timeout_s: float) -> Any:
    """Return the store in a memfd, through which the ranks on one host find each other."""
    store = _torch.FileStore(f"/proc/self/fd/{fd}", -1)
    store.set_timeout(timedelta(seconds=timeout_s))
    return store


def form_group(
    store: Any, name: str, rank: int, num_ranks: int, timeout_s: float, host: str = LOOPBACK
) -> Any:
    """Connect this rank with all others of the group of this name; wait for them.

    host: the address that the others reach this rank at.
    """
    options = _torch.ProcessGroupGloo._Options()
    options._devices = [_torch.ProcessGroupGloo.create_device(hostname=host)]
    options._timeout = timedelta(seconds=timeout_s)
    options._threads = 1
    return _torch.ProcessGroupGloo(_torch.PrefixStore(name, store), rank, num_ranks, options)


def agree_on_name(
    store: Any, rank: int, num_ranks: int, timeout_s: float, show_life: Callable[[], None]
) -> str | None:
    """Return the name of a group of the ranks that are there now; None if one does not come.

    The name says how often each rank has started. A rank waits until all others have written the
    name that it sees itself: none of them has died meanwhile, and nobody has used it before.
    """
    store.add(f"starts-{rank}", 1)
    deadline_s = time.monotonic() + timeout_s
    mine = ""
    while time.monotonic() < deadline_s:
        starts = [_look_up(store, f"starts-{other}") for other in range(num_ranks)]
        if None not in starts:
            name = "-".join(map(str, starts))
            if name != mine:
                store.set(f"sees-{rank}", name)
                mine = name
            if all(_look_up(store, f"sees-{other}") == name for other in range(num_ranks)):
                return name
        time.sleep(POLL_S)
        show_life()
    return None


def _look_up(store: Any, key: str) -> str | None:
    """Return a value if there is one: the library would wait for it."""
    return store.get(key).decode() if store.check([key]) else None


def in_short(error: BaseException) -> str:
    """Return the library's message without its source line and its advice."""
    text = re.sub(r"^\[[^]]*\] ", "", str(error)).strip() or type(error).__name__
    return text.splitlines()[0].split(". ")[0]


class GlooPeers:
    """One rank's end. It waits in the calling thread, and shows life meanwhile."""

    def __init__(
        self,
        store: Any,
        rank: int,
        num_ranks: int,
        timeout_s: float,
        show_life: Callable[[], None] = lambda: None,
        meet_s: float = MEET_S,
        host: str = LOOPBACK,
    ) -> None:
        """Meet the others; when a rank has died, all of them meet again, through the same store.
        store, host: see form_group(). timeout_s: the longest time that one rank may make the others
        wait. meet_s: the same for its start. show_life: called every LIFE_S while this waits."""
        if not has_gloo():
            raise UsageError(
                "This build of torch has no gloo, which `combine: gradients` needs. Use --combine "
                "average, or install torch from PyPI."
            )
        self.rank = rank
        self.num_ranks = num_ranks
        self._timeout_s = timeout_s
        self._show_life = show_life
        name = agree_on_name(store, rank, num_ranks, meet_s, show_life)
        if name is None:
            raise ReduceBroken(
                f"The learners of {num_ranks} groups have not met: one has not started for "
                f"{meet_s:g} s."
            )
        self._group: Any = self._form(store, name, host)

    def _form(self, store: Any, name: str, host: str) -> Any:
        """Form the group in a thread, because that only has a blocking wait."""
        formed: list[Any] = []

        def form() -> None:
            try:
                group = form_group(store, name, self.rank, self.num_ranks, self._timeout_s, host)
                formed.append(group)
            except BaseException as error:  # noqa: BLE001 - it is raised in the caller's thread
                formed.append(error)

        thread = threading.Thread(target=form, name="peers", daemon=True)
        thread.start()
        while not formed:
            thread.join(LIFE_S)
            self._show_life()
        if isinstance(formed[0], NETWORK_ERRORS):
            raise self._broken(formed[0])
        if isinstance(formed[0], BaseException):
            raise formed[0]
        return formed[0]

    def add(self, values: Tensor) -> None:
        if self._group is None:
            raise ReduceBroken("The learners of the groups are no longer connected.")
        on_host = values.cpu() if values.is_cuda else values
        try:
            self._finish(self._group.allreduce([on_host]))
        except NETWORK_ERRORS as error:
            self.close()  # the others, which wait for this rank, learn of it at once
            raise self._broken(error) from error
        if values.is_cuda:
            values.copy_(on_host)

    def _finish(self, work: Any) -> None:
        """Wait until all ranks have given their part. Gloo itself ends the wait in time."""
        while True:
            try:
                work.wait(timedelta(seconds=LIFE_S))
                return
            except RuntimeError:
                if work.is_completed():
                    work.wait()  # this raises what went wrong, if anything did
                    return
            self._show_life()

    def _broken(self, error: BaseException) -> ReduceBroken:
        return ReduceBroken(
            f"The learners of {self.num_ranks} groups cannot add up their gradients: one has "
            f"ended, or has not come for {self._timeout_s:g} s ({in_short(error)})."
        )

    def close(self) -> None:
        """Leave the group: ranks that still wait for this one are told so."""
        self._group = None
