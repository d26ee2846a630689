"""One end of one measurement, on its host: `end.py send|receive TRANSPORT ADDRESS SIZE SECONDS`.

The keys of the run come over standard input.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from benchmarks.links.transports import TRANSPORTS
from tianji.gateways.links.keys import LinkKeys


def find_ends(transport: str) -> tuple[Any, Any]:
    if transport in TRANSPORTS:
        return TRANSPORTS[transport]
    from benchmarks.links.forwarding import link_receiver, link_sender

    return link_sender, link_receiver


def main() -> None:
    side, transport, address, size, seconds = sys.argv[1:]
    keys = LinkKeys.from_text(sys.stdin.read())
    if transport == "link":
        keys = LinkKeys(keys.secret, pem="")
    send, receive = find_ends(transport)
    if side == "send":
        send(address, int(size), float(seconds), keys)
    else:
        print(json.dumps(receive(address, int(size), keys).figures()))


if __name__ == "__main__":
    main()
