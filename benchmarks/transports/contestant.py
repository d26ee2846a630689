"""One point over one transport, in a process tree of its own; prints one line of JSON.

.peers/bin/python -m benchmarks.transports.contestant zmq-ipc --point '{"size_bytes": 4096}'
.peers/bin/python -m benchmarks.transports.contestant --list
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import signal
from importlib import metadata, util
from types import FrameType
from typing import Any

from benchmarks.transports.points import Point

# name: (module in peers/, what must be importable, the distribution whose version is told)
TRANSPORTS = {
    "mp-queue": ("mp_queue", "multiprocessing", None),
    "mp-pipe": ("mp_pipe", "multiprocessing", None),
    "torch-queue": ("torch_queue", "torch", "torch"),
    "zmq-ipc": ("zmq_sockets", "zmq", "pyzmq"),
    "zmq-tcp": ("zmq_sockets", "zmq", "pyzmq"),
    "mpi": ("mpi_buffers", "mpi4py", "mpi4py"),
    "ray": ("ray_actors", "ray", "ray"),
    "iceoryx2": ("iceoryx_samples", "iceoryx2", "iceoryx2"),
    "iceoryx2-poll": ("iceoryx_samples", "iceoryx2", "iceoryx2"),
    "faster-fifo": ("fifo", "faster_fifo", "faster-fifo"),
}


def installed() -> dict[str, str | None]:
    """The version of every transport, None where it is not installed."""
    return {name: _version(name) for name in TRANSPORTS}


def _version(name: str) -> str | None:
    _, package, distribution = TRANSPORTS[name]
    if util.find_spec(package) is None:
        return None
    return metadata.version(distribution) if distribution else platform.python_version()


def run(name: str, point: Point) -> dict[str, Any]:
    module = importlib.import_module(f"benchmarks.transports.peers.{TRANSPORTS[name][0]}")
    found: dict[str, Any] = module.run(name, point)
    return found


def _give_up(signal_number: int, frame: FrameType | None) -> None:
    raise TimeoutError("the time for this point is over")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=TRANSPORTS, nargs="?")
    parser.add_argument("--point", type=Point.from_json, help="JSON with the fields of Point")
    parser.add_argument("--timeout-s", type=int, default=60)
    parser.add_argument("--list", action="store_true", help="what is installed")
    args = parser.parse_args()
    if args.list:
        print(json.dumps(installed()))
        return
    if args.name is None or args.point is None:
        parser.error("give a transport and a point, or --list")
    # Raised in this process, so that everything that it started is ended on the way out.
    signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(args.timeout_s)
    print(json.dumps(run(args.name, args.point)))


if __name__ == "__main__":
    main()
