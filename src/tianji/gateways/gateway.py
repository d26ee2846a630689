"""The gateway of one host: one thread that moves messages between local channels and other hosts.

Takes: what ports find in local channels, what sockets bring. Gives: both to the other side.
Waits for: sockets, a bell that local roles ring, and the next time something is due.
Unblocked by: any of them, and `close`. Stops when: it is closed.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from selectors import EVENT_READ, EVENT_WRITE
from typing import Protocol, TypeVar

from tianji.channels.memory import Bell
from tianji.errors import ChannelError
from tianji.gateways.interface import Port
from tianji.gateways.links.connection import Connection
from tianji.gateways.links.dialer import Dialer
from tianji.gateways.links.keys import LinkKeys
from tianji.gateways.links.link import Link
from tianji.gateways.links.listener import LOOPBACK, Listener
from tianji.gateways.links.state import NEVER_NS, LinkLimits, LinkReport, LinkState
from tianji.gateways.refusals import Refusals
from tianji.gateways.watch import BellRelay, Watch

MAX_WAIT_S = 0.25
T = TypeVar("T")


class _Ticks(Protocol):
    """Has something to do at a time."""

    def tick(self, now_ns: int) -> None: ...

    def due_ns(self) -> int: ...


class _Door(_Ticks, Protocol):
    """Makes connections."""

    def close(self) -> None: ...


def _settle(done: Future[T], call: Callable[[], T]) -> None:
    try:
        done.set_result(call())
    except Exception as error:  # noqa: BLE001 - it is raised where the call was asked for
        done.set_exception(error)


class Gateway:
    """Links of one host, and the doors through which their connections come."""

    def __init__(
        self,
        name: str,
        keys: LinkKeys,
        bell: Bell | None = None,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """name: of this host. bell: local roles ring it when they have something to forward."""
        self.name = name
        self.refusals = Refusals()
        self._keys = keys
        self._bell = bell
        self._now_ns = now_ns
        self._watch = Watch()
        self._relay = None if bell is None else BellRelay(bell, self._watch)
        self._listener: Listener | None = None
        self._dialers: list[Dialer] = []
        self._links: list[Link] = []
        self._asked: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        """Calls that other threads want made in the gateway's thread."""
        self._is_stopped = self._is_closed = False
        self._closing = threading.Lock()
        self._thread: threading.Thread | None = None

    # ------------------------------------------------------------------ building

    def listen(self, address: str = LOOPBACK, port: int = 0) -> tuple[str, int]:
        """Let peers connect; return the address to give them."""
        self._listener = Listener(self._keys, self._watch, self.refusals, (address, port))
        return self._listener.address

    def link(
        self,
        peer: str,
        ports: Sequence[Port],
        address: tuple[str, int] | None = None,
        limits: LinkLimits | None = None,
    ) -> Link:
        """Add the link to a peer: at its address, or, without one, when it connects."""
        link = Link(peer, ports, self.refusals, limits, self._now_ns)
        link.on_closing = self._stop_watching
        self._links.append(link)
        if address is not None:
            self._dialers.append(Dialer(self.name, self._keys, self._watch, link, address))
        elif self._listener is not None:
            self._listener.expect(link)
        else:
            raise ValueError("call listen() before adding a link whose peer connects")
        return link

    def unlink(self, link: Link) -> None:
        """Give up a link whose peer connects: its peer is refused from now on."""
        assert self._listener is not None, "the peer connects"
        self._links.remove(link)
        self._listener.expect_no_more(link)
        link.give_up()

    def _stop_watching(self, connection: Connection) -> None:
        self._watch.remove(connection.socket)

    # ------------------------------------------------------------------- running

    def turn(self, max_wait_s: float) -> None:
        """Move everything that can be moved, then sleep until there is something to do."""
        while not self._asked.empty():
            self._asked.get()()
        now_ns = self._now_ns()
        self._tick(now_ns)
        for link in self._links:
            if link.has_unread:
                link.read()
        has_moved = self._pump()
        if not has_moved and self._bell is not None:
            self._bell.arm()
            has_moved = self._pump()  # what came before the bell was armed
        for link in self._links:
            self._write(link)
        is_busy = has_moved or any(link.has_unread for link in self._links)
        self._watch.wait(0.0 if is_busy else self._wait_s(now_ns, max_wait_s))

    def _tick(self, now_ns: int) -> None:
        for ticking in self._ticking():
            ticking.tick(now_ns)

    def _wait_s(self, now_ns: int, max_wait_s: float) -> float:
        due_ns = min((ticking.due_ns() for ticking in self._ticking()), default=NEVER_NS)
        return max(0.0, min(max_wait_s, (due_ns - now_ns) / 1e9))

    def _ticking(self) -> Iterable[_Ticks]:
        yield from self._links
        yield from self._doors()

    def _doors(self) -> Iterable[_Door]:
        yield from self._dialers
        if self._listener is not None:
            yield self._listener

    def _pump(self) -> bool:
        moved = [link.pump() for link in self._links]
        return any(moved)

    def _write(self, link: Link) -> None:
        is_done = link.write()
        if link.connection is not None:
            events = EVENT_READ if is_done else EVENT_READ | EVENT_WRITE
            self._watch.set(link.connection.socket, events, link.ready)

    def start(self) -> None:
        """Run in a thread of its own, until it is closed."""
        thread = threading.Thread(target=self.run, name=f"gateway-{self.name}", daemon=True)
        thread.start()
        self._thread = thread  # it has ended, or it runs

    def run(self) -> None:
        """Run in the caller's thread, until another one calls `stop`."""
        while not self._is_stopped:
            self.turn(MAX_WAIT_S)

    @property
    def is_running(self) -> bool:
        """False before `start`, and when the gateway's thread has ended, for whatever reason."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """Make `run` return, from any thread."""
        self._is_stopped = True
        self._watch.wake()

    def wake(self) -> None:
        """End the present wait, from any thread."""
        self._watch.wake()

    def do(self, call: Callable[[], T]) -> T:
        """Make a call in the gateway's thread, which alone touches links and ports; return what it
        returns, or raise what it raises. Raise ChannelError if the gateway does not run."""
        done: Future[T] = Future()
        with self._closing:
            if not self._is_closed:
                self._asked.put(lambda: _settle(done, call))
                self._watch.wake()
        while not self._has_ended:
            with contextlib.suppress(TimeoutError):
                return done.result(timeout=MAX_WAIT_S)
        raise ChannelError(f"The gateway of {self.name} has ended.")

    @property
    def _has_ended(self) -> bool:
        return self._is_closed or (self._thread is not None and not self.is_running)

    def gone(self) -> list[str]:
        """Return the peers that were given up."""
        return [link.peer for link in tuple(self._links) if link.state is LinkState.GONE]

    def reports(self) -> list[LinkReport]:
        return [link.report() for link in self._links]

    def close(self) -> None:
        """Stop, and end all connections; whoever called `run` waits for its return first. Closing
        again does nothing."""
        with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
        self.stop()
        if self._thread is not None:
            self._thread.join()
        if self._relay is not None:
            self._relay.close()
        for door in self._doors():
            door.close()
        for link in self._links:
            link.drop()
        self._watch.close()
