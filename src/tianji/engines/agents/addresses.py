"""The addresses of a host, and which of another host's can be reached from here."""

from __future__ import annotations

import contextlib
import fcntl
import socket
import struct
from collections.abc import Iterator, Sequence

from tianji.errors import TianjiError

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
