"""The addresses of a host, and which of another host's can be reached from here.

    with Greeter() as greeter:                         # the head listens for a moment
        reached = [visit(greeter.invitation), ...]     # every host tries all addresses of the head
    addresses = choose(reached)                        # one that all hosts have reached

A host's own address is the one from which it has reached the head, so that it is on the interface
of the network between them. IPv4 only.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import secrets
import socket
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Self

from tianji.errors import TianjiError, UsageError

ALL_ADDRESSES = "0.0.0.0"
LOOPBACK = "127.0.0.1"
ANSWERS_S = 3.0
_SIOCGIFADDR = 0x8915


def own_addresses() -> list[str]:
    """Return the IPv4 addresses of this host, loopback last."""
    return [*(address for address in _of_interfaces() if address != LOOPBACK), LOOPBACK]


def _of_interfaces() -> Iterator[str]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # an interface without an address
                found = fcntl.ioctl(asking, _SIOCGIFADDR, struct.pack("256s", name.encode()))
                yield socket.inet_ntoa(found[20:24])


def first_that_answers(addresses: Sequence[str], port: int) -> tuple[str, int]:
    """Return the first address at which somebody listens."""
    for address in addresses:
        with contextlib.suppress(OSError):
            socket.create_connection((address, port), ANSWERS_S).close()
            return address, port
    raise TianjiError(
        f"{socket.gethostname()} cannot reach the learner's host at port {port} of any of its "
        f"addresses: {', '.join(addresses)}. Allow connections between the hosts of the cluster."
    )


class Invitation(NamedTuple):
    """Where the head listens, and what it says there: another host may have the same address."""

    addresses: list[str]
    port: int
    answer: str

    def encode(self) -> bytes:
        return json.dumps(self).encode()

    @staticmethod
    def decode(words: bytes) -> Invitation:
        return Invitation(*json.loads(words))


class Greeter:
    """Listens at all addresses of this host for a moment, and tells all who come the same words."""

    def __init__(self) -> None:
        self._socket = socket.create_server((ALL_ADDRESSES, 0))
        port = self._socket.getsockname()[1]
        self.invitation = Invitation(own_addresses(), port, secrets.token_hex(16))
        self._thread = threading.Thread(target=self._answer, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)  # it ends the wait for visitors
        self._socket.close()
        self._thread.join()

    def _answer(self) -> None:
        while True:
            try:
                visitor, _ = self._socket.accept()
            except OSError:  # closed
                return
            with visitor, contextlib.suppress(OSError):
                visitor.sendall(self.invitation.answer.encode())


def visit(invitation: Invitation) -> dict[str, str]:
    """Return the addresses at which the head was reached, each with that of this host."""
    reached = {}
    for address in invitation.addresses:
        with (
            contextlib.suppress(OSError),
            socket.create_connection((address, invitation.port), ANSWERS_S) as connection,
        ):
            said = connection.recv(len(invitation.answer), socket.MSG_WAITALL)
            if said.decode(errors="replace") == invitation.answer:
                reached[address] = str(connection.getsockname()[0])
    return reached


def choose(reached: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the address of each host, in the network in which all of them have reached the head.

    Loopback comes first: if all have reached the head there, they are on one host.
    reached: what visit() returned on each host, the head's first. UsageError: there is none."""
    own, *others = reached
    for address in sorted(own, key=lambda address: address != LOOPBACK):
        if all(address in each for each in others):
            return [own[address], *(each[address] for each in others)]
    without = [str(rank) for rank, each in enumerate(reached) if not each]
    raise UsageError(
        "Learners on other hosts cannot add up their gradients (combine = gradients): the first "
        f"host has no IPv4 address at which all others reach it, of {', '.join(own)}."
        + (f" Ranks that reach none: {', '.join(without)}." if without else "")
        + " Look at the firewall between the hosts, or use --combine average."
    )
