"""Hosts of their own on one machine: network namespaces, joined by a bridge.

    with Network(3) as network:
        network.start(1, "ray", "start", ...)      # on the second host
        network.set_cable(1, "down")

Everything is removed at the end, processes included. It needs root and `ip`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess

LIMIT_S = 30


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_S)


class Network:
    """Hosts with the addresses 10.213.78.1 and up."""

    def __init__(self, num_hosts: int) -> None:
        self._bridge = f"tj{os.getpid()}b"
        self._names = [f"tj{os.getpid()}n{host}" for host in range(num_hosts)]
        self.addresses = [f"10.213.78.{host + 1}" for host in range(num_hosts)]

    def __enter__(self) -> Network:
        try:
            _run("ip", "link", "add", self._bridge, "type", "bridge")
            _run("ip", "link", "set", self._bridge, "up")
            for host, name in enumerate(self._names):
                _run("ip", "netns", "add", name)
                _run("ip", "link", "add", self._cable(host), "type", "veth",
                     "peer", "name", "eth0", "netns", name)  # fmt: skip
                _run("ip", "link", "set", self._cable(host), "master", self._bridge, "up")
                self._in(host, "ip", "addr", "add", f"{self.addresses[host]}/24", "dev", "eth0")
                self._in(host, "ip", "link", "set", "lo", "up")
                self._in(host, "ip", "link", "set", "eth0", "up")
        except subprocess.SubprocessError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for host, name in enumerate(self._names):
            self.kill(host)
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", self._bridge], capture_output=True, check=False)

    def _cable(self, host: int) -> str:
        return f"tj{os.getpid()}c{host}"

    def prefix(self, host: int) -> tuple[str, ...]:
        """Return the words before a command that runs on a host."""
        return ("ip", "netns", "exec", self._names[host])

    def _in(self, host: int, *command: str) -> None:
        _run(*self.prefix(host), *command)

    def run(self, host: int, *command: str) -> None:
        """Run a command on a host to its end; a test fails where it does."""
        found = subprocess.run(
            [*self.prefix(host), *command], capture_output=True, text=True, timeout=LIMIT_S,
            check=False,
        )  # fmt: skip
        assert found.returncode == 0, found.stdout + found.stderr

    def set_cable(self, host: int, state: str) -> None:
        _run("ip", "link", "set", self._cable(host), state)

    def kill(self, host: int) -> None:
        """End every process of a host at once, as a power cut would."""
        name = self._names[host]
        found = subprocess.run(
            ["ip", "netns", "pids", name], capture_output=True, text=True, check=False
        )
        for pid in map(int, found.stdout.split()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
