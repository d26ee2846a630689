"""Two hosts on one machine: network namespaces, joined by a virtual cable (a veth pair).

    with TwoHosts() as hosts:
        hosts.limit_gbit(1.0)
        receiver = hosts.start("b", ["python", ...])
        hosts.start("a", [...]).wait()

Everything is removed at the end, processes included. It needs root, `ip` and `tc`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

Host = Literal["a", "b"]
LINE_BURST = "1mb"  # more than a packet of 64 KB before segmentation, less than a millisecond's


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=20)


@lru_cache
def why_not() -> str:
    """Return why namespaces cannot be made here; "" if they can."""
    missing = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
    if missing:
        return f"{' and '.join(missing)} not installed"
    name = f"tj{os.getpid()}-try"
    try:
        _run("ip", "netns", "add", name)
        _run("ip", "netns", "del", name)
    except subprocess.SubprocessError:
        return "network namespaces are not permitted"
    return ""


class TwoHosts:
    """Hosts `a` and `b`, with one cable between them."""

    addresses: Mapping[Host, str] = {"a": "10.213.77.1", "b": "10.213.77.2"}

    def __init__(self) -> None:
        self._names = {host: f"tj{os.getpid()}-{host}" for host in self.addresses}
        self._cable = {host: f"tj{os.getpid()}{host}" for host in self.addresses}
        self._processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> TwoHosts:
        try:
            for name in self._names.values():
                _run("ip", "netns", "add", name)
            ends, names = self._cable, self._names
            _run("ip", "link", "add", ends["a"], "netns", names["a"], "type", "veth",
                 "peer", "name", ends["b"], "netns", names["b"])  # fmt: skip
            for host, address in self.addresses.items():
                self._in(host, "ip", "addr", "add", f"{address}/30", "dev", ends[host])
                self._in(host, "ip", "link", "set", "lo", "up")
                self.set_cable(host, "up")
        except subprocess.SubprocessError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with the processes that it started
            process.communicate()
        for name in self._names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def _in(self, host: Host, *command: str) -> None:
        _run("ip", "netns", "exec", self._names[host], *command)

    def set_cable(self, host: Host, state: Literal["up", "down"]) -> None:
        self._in(host, "ip", "link", "set", self._cable[host], state)

    def limit_gbit(self, gbit: float) -> None:
        """Let each direction carry so much."""
        for host in self.addresses:
            self._shape(host, "tbf", "rate", f"{gbit}gbit", "burst", LINE_BURST, "latency", "10ms")

    def lose_bursts(self) -> None:
        """Give each direction a queue so short that bursts lose packets."""
        for host in self.addresses:
            self._shape(host, "tbf", "rate", "100mbit", "burst", "70kb", "limit", "70kb")

    def disturb(self, *netem: str) -> bool:
        """Delay or lose packets in both directions: disturb("delay", "5ms", "loss", "1%"). Return
        False where the kernel cannot do it."""
        try:
            for host in self.addresses:
                self._shape(host, "netem", *netem)
        except subprocess.CalledProcessError:
            return False
        return True

    def _shape(self, host: Host, *discipline: str) -> None:
        self._in(host, "tc", "qdisc", "replace", "dev", self._cable[host], "root", *discipline)

    def start(self, host: Host, command: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """Start a command on a host; its output can be read."""
        process = subprocess.Popen(
            ["ip", "netns", "exec", self._names[host], *command],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE, text=True,
            start_new_session=True, **options,
        )  # fmt: skip
        self._processes.append(process)
        return process
