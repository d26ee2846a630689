"""Peers between processes: gloo's collectives, over TCP.

They are neither authenticated nor encrypted: on the loopback interface where all ranks are on one
host, else on that of the network between the hosts, which must be trusted. The ranks find each
other by their cards (cards.py).

A tensor on a GPU is added up in host memory. Where every rank has a GPU of its own, NCCL saves the
two copies (nccl.py).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from torch import Tensor, distributed

from tianji.channels.peers.cards import Cards
from tianji.errors import ReduceBroken, UsageError

_torch: Any = distributed
"""Untyped: the library's type stubs lack half of what is used here."""

LOOPBACK = "127.0.0.1"
LIFE_S = 0.25
"""A rank that waits for others shows this often that it is alive."""
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


def named(store: Any, name: str) -> Any:
    """Return the part of a store that belongs to the group of this name."""
    return _torch.PrefixStore(name, store)


def form_group(
    store: Any, rank: int, num_ranks: int, timeout_s: float, host: str = LOOPBACK
) -> Any:
    """Connect this rank with all others of a group; wait for them.

    store: where they tell their addresses; nobody else uses it. host: the address of this host that
    the others reach it at: connections are on its interface."""
    options = _torch.ProcessGroupGloo._Options()
    options._devices = [_torch.ProcessGroupGloo.create_device(hostname=host)]
    options._timeout = timedelta(seconds=timeout_s)
    options._threads = 1
    return _torch.ProcessGroupGloo(store, rank, num_ranks, options)


def in_short(error: BaseException) -> str:
    """Return the library's message without its source line and its advice."""
    text = re.sub(r"^\[[^]]*\] ", "", str(error)).strip() or type(error).__name__
    return text.splitlines()[0].split(". ")[0]


class GlooPeers:
    """One rank's end. It waits in the calling thread, and shows life meanwhile."""

    def __init__(
        self,
        cards: Cards,
        timeout_s: float,
        show_life: Callable[[], None] = lambda: None,
        host: str = LOOPBACK,
    ) -> None:
        """Meet the others, however late they start; when a rank has died, all of them meet again.
        timeout_s: the longest time that one rank may make the others wait once they have met.
        show_life: called every LIFE_S while this waits. host: see form_group()."""
        if not has_gloo():
            raise UsageError(
                "This build of torch has no gloo, which `combine: gradients` needs. Use --combine "
                "average, or install torch from PyPI."
            )
        self.rank = cards.rank
        self.num_ranks = cards.num_ranks
        self.cards = cards
        self.timeout_s = timeout_s
        self._show_life = show_life
        self.host = host
        self.name = ""
        """The name of the group that they have formed."""
        self._group: Any = self._meet()

    def _meet(self) -> Any:
        """Form the group in a thread, because that only has blocking waits."""
        formed: list[Any] = []

        def form() -> None:
            from tianji.channels.peers.card_store import CardStore

            try:
                self.name = self.cards.agree()
                store = CardStore(self.cards, self.name, self.timeout_s)
                formed.append(
                    form_group(store, self.rank, self.num_ranks, self.timeout_s, self.host)
                )
            except BaseException as error:  # noqa: BLE001 - it is raised in the caller's thread
                formed.append(error)

        thread = threading.Thread(target=form, name="peers", daemon=True)
        thread.start()
        while not formed:
            thread.join(LIFE_S)
            self._show_life()
        if isinstance(formed[0], NETWORK_ERRORS):
            raise ReduceBroken(
                f"The learners of {self.num_ranks} groups cannot connect ({in_short(formed[0])}). "
                f"This one is at {self.host}: the others must reach every port there."
            )
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
            raise self._broken(in_short(error)) from error
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
            if self.cards.has_left(self.name):  # its host was lost, and sent no farewell
                raise self._broken("another one has started again")
            self._show_life()

    def _broken(self, why: str) -> ReduceBroken:
        return ReduceBroken(
            f"The learners of {self.num_ranks} groups cannot add up their gradients: one has "
            f"ended, or has not come for {self.timeout_s:g} s ({why})."
        )

    def close(self) -> None:
        """Leave the group: ranks that still wait for this one are told so."""
        self._group = None
