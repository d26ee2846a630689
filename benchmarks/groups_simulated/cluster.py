"""Ray nodes in network namespaces: hosts of their own on one machine.

    with RayHosts(2) as hosts:
        train("cartpole-ppo", *hosts.words, prefix=hosts.prefix, env=hosts.env)

The driver has a node of its own, without CPUs for groups. It needs root, `ip`, and Ray.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.namespaces import why_not as why_no_namespaces
from tests.system.namespaces import Network

RAY = (sys.executable, "-m", "ray.scripts.scripts")
PORT = 6379
CPUS = 2


def why_not() -> str:
    """Return why hosts of their own cannot be made here; "" if they can."""
    if importlib.util.find_spec("ray") is None:
        return "Ray is not installed"
    return why_no_namespaces()


class RayHosts:
    """So many hosts for groups, and the driver's."""

    def __init__(self, num_hosts: int) -> None:
        self._network = Network(num_hosts + 1)
        self._num_hosts = num_hosts
        # The paths of Ray's sockets must be short.
        self._folder = tempfile.TemporaryDirectory(prefix="tj")
        self.env: Mapping[str, str] = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
        }

    def __enter__(self) -> RayHosts:
        os.environ.update(self.env)
        self._network.__enter__()
        try:
            self._start(0, "--head", "--port", str(PORT), "--include-dashboard", "false", cpus=0)
            for host in range(1, self._num_hosts + 1):
                self._start(host, "--address", self._address, cpus=CPUS)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._network.__exit__()
        self._folder.cleanup()
        for name in self.env:
            os.environ.pop(name, None)

    def _start(self, host: int, *words: str, cpus: int) -> None:
        self._network.run(
            host, *RAY, "start", *words, "--num-cpus", str(cpus),
            "--node-ip-address", self._network.addresses[host],
            "--temp-dir", str(Path(self._folder.name) / f"ray{host}"), "--disable-usage-stats",
        )  # fmt: skip

    @property
    def _address(self) -> str:
        return f"{self._network.addresses[0]}:{PORT}"

    @property
    def words(self) -> tuple[str, ...]:
        return ("--engine", "ray", "--ray-address", self._address)

    @property
    def prefix(self) -> tuple[str, ...]:
        return self._network.prefix(0)
