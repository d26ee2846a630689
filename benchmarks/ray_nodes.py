"""A Ray cluster over the hosts of benchmarks/namespaces.py, for tests and benchmarks.

    with ray_nodes(3) as nodes:
        nodes.join(1)
        nodes.network.kill(1)

The first host is the head's and has no CPUs, so that everything runs on other hosts.
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from benchmarks.namespaces import Network

RAY = (sys.executable, "-m", "ray.scripts.scripts")
PORT = "6379"


class RayNodes:
    """The nodes; `prefix` stands before a command on the head's host."""

    def __init__(self, network: Network, folder: Path) -> None:
        self.network = network
        self.folder = folder
        self.address = f"{network.addresses[0]}:{PORT}"
        self.prefix = network.prefix(0)
        self._start(0, "--head", "--port", PORT, "--include-dashboard", "false", cpus=0)

    def join(self, host: int, cpus: int = 2) -> None:
        self._start(host, "--address", self.address, cpus=cpus)

    def _start(self, host: int, *words: str, cpus: int) -> None:
        self.network.run(
            host, *RAY, "start", *words, "--num-cpus", str(cpus),
            "--node-ip-address", self.network.addresses[host],
            "--temp-dir", str(self.folder / f"ray{host}"), "--disable-usage-stats",
        )  # fmt: skip


@contextmanager
def ray_nodes(num_hosts: int) -> Iterator[RayNodes]:
    """Make hosts and start Ray's head on the first one."""
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    # The paths of Ray's sockets must be short, which those of many temporary folders are not.
    with (
        mock.patch.dict(os.environ, token),
        tempfile.TemporaryDirectory(prefix="tj", dir="/tmp") as folder,
        Network(num_hosts) as network,
    ):
        yield RayNodes(network, Path(folder))
