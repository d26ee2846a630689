"""Hosts on one machine, for tests and benchmarks: network namespaces, joined by a bridge.

    with Network(3) as network:
        network.limit_gbit(1.0)
        receiver = network.start(1, ["python", ...])     # on the second host
        network.set_cable(1, "down")
        network.kill(2)

A host has an address, a name and a loopback interface of its own; files and cores are shared.
Everything is removed at the end, processes included. It needs root, `ip` and `tc`.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

LIMIT_S = 30
LINE_BURST = "1mb"  # more than a packet of 64 KB before segmentation, less than a millisecond's
TOOLS = ("ip", "tc", "unshare", "hostname")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_S)


@lru_cache
def why_not() -> str:
    """Return why hosts cannot be made here; "" if they can."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"{' and '.join(missing)} not installed"
    try:
        with Network(1) as network:
            network.run(0, "true")
    except subprocess.SubprocessError:
        return "network namespaces are not permitted"
    return ""


class Network:
    """Hosts with the addresses 10.213.78.1 and up, each with a cable to one bridge."""

    def __init__(self, num_hosts: int) -> None:
        mark = secrets.token_hex(3)
        self.names = [f"tj{mark}n{host}" for host in range(num_hosts)]
        self.addresses = [f"10.213.78.{host + 1}" for host in range(num_hosts)]
        self._bridge = f"tj{mark}b"
        self._cables = [f"tj{mark}c{host}" for host in range(num_hosts)]
        self._processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Network:
        try:
            _run("ip", "link", "add", self._bridge, "type", "bridge")
            _run("ip", "link", "set", self._bridge, "up")
            for host, name in enumerate(self.names):
                _run("ip", "netns", "add", name)
                _run("ip", "link", "add", self._cable(host), "type", "veth",
                     "peer", "name", "eth0", "netns", name)  # fmt: skip
                _run("ip", "link", "set", self._cable(host), "master", self._bridge, "up")
                self.run(host, "ip", "addr", "add", f"{self.addresses[host]}/24", "dev", "eth0")
                self.run(host, "ip", "link", "set", "lo", "up")
                self.run(host, "ip", "link", "set", "eth0", "up")
        except subprocess.SubprocessError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for host, name in enumerate(self.names):
            self.kill(host)
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
            subprocess.run(
                ["ip", "link", "del", self._cable(host)], capture_output=True, check=False
            )
        subprocess.run(["ip", "link", "del", self._bridge], capture_output=True, check=False)
        for process in self._processes:
            process.communicate()

    def _cable(self, host: int) -> str:
        return self._cables[host]

    def prefix(self, host: int) -> tuple[str, ...]:
        """Return the words before a command that runs on a host."""
        name = self.names[host]
        named = ("unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name)
        return ("ip", "netns", "exec", name, *named)

    def run(self, host: int, *command: str) -> None:
        """Run a command on a host to its end; raise CalledProcessError where it fails."""
        words = [*self.prefix(host), *command]
        found = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if found.returncode:
            output = found.stdout + found.stderr
            raise subprocess.CalledProcessError(found.returncode, f"{words}\n{output}")

    def start(self, host: int, command: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """Start a command on a host; its output can be read."""
        process = subprocess.Popen(
            [*self.prefix(host), *command], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE, **options,
        )  # fmt: skip
        self._processes.append(process)
        return process

    def processes(self, host: int) -> list[int]:
        """Return the ids of all processes of a host."""
        words = ["ip", "netns", "pids", self.names[host]]
        found = subprocess.run(words, capture_output=True, text=True, check=False)
        return [int(word) for word in found.stdout.split()]

    def kill(self, host: int) -> None:
        """End every process of a host at once."""
        for pid in self.processes(host):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def set_cable(self, host: int, state: Literal["up", "down"]) -> None:
        _run("ip", "link", "set", self._cable(host), state)

    def limit_gbit(self, gbit: float) -> None:
        """Let each host send so much."""
        self._shape("tbf", "rate", f"{gbit}gbit", "burst", LINE_BURST, "latency", "10ms")

    def lose_bursts(self) -> None:
        """Give each host a queue so short that bursts lose packets."""
        self._shape("tbf", "rate", "100mbit", "burst", "70kb", "limit", "70kb")

    def disturb(self, *netem: str) -> bool:
        """Delay or lose packets of all hosts: disturb("delay", "5ms", "loss", "1%"). Return False
        where the kernel cannot do it."""
        try:
            self._shape("netem", *netem)
        except subprocess.CalledProcessError:
            return False
        return True

    def _shape(self, *discipline: str) -> None:
        for host in range(len(self.names)):
            self.run(host, "tc", "qdisc", "replace", "dev", "eth0", "root", *discipline)
