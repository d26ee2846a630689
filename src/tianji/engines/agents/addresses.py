"""The address of every host in the network between them, where nobody else knows it (MPI).

    with Door() as door:                            # the head listens for a moment
        reached = [visit(door.invitation), ...]     # every host tries all addresses of the head
    addresses = choose(reached)                     # the first that all hosts have reached

A host's own address is the one from which it has reached the head, so that it is on the interface
of that network. IPv4 only.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import secrets
import socket
import struct
import threading
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

from tianji.errors import UsageError

ANSWERS_S = 2.0
"""A host that is reached answers within this time."""
SIOCGIFADDR = 0x8915
_NAME_BYTES = 15


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


class Door:
    """Listens at all addresses of this host, and tells everybody who comes the same words."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("", 0))
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

    reached: what visit() returned on each host, the head's first. UsageError: there is none."""
    own, *others = reached
    for address in own:
        if all(address in each for each in others):
            return [own[address], *(each[address] for each in others)]
    without = [str(rank) for rank, each in enumerate(reached) if not each]
    raise UsageError(
        "Learners on other hosts cannot add up their gradients (combine = gradients): the first "
        f"host has no IPv4 address at which all others reach it, of {', '.join(own)}."
        + (f" Ranks that reach none: {', '.join(without)}." if without else "")
        + " Look at the firewall between the hosts, or use --combine average."
    )


def own_addresses() -> list[str]:
    """Return the IPv4 addresses of this host, that of the loopback interface last."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # an interface without an address
                request = struct.pack("256s", name.encode()[:_NAME_BYTES])
                answer = fcntl.ioctl(asking.fileno(), SIOCGIFADDR, request)
                found.append(socket.inet_ntoa(answer[20:24]))
    return sorted(found, key=lambda address: address.startswith("127."))
