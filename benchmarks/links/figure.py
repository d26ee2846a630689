"""Make the data of figures tianji-5c and tianji-5d: messages between hosts (network namespaces).

    sudo .venv/bin/python -m benchmarks.links.figure 5c        actors on 4 hosts, 6 minutes
    sudo .venv/bin/python -m benchmarks.links.figure 5d        2 hosts by message size, 5 minutes
    sudo .venv/bin/python -m benchmarks.links.figure 5c --quick

All hosts share the cores of this machine. The package draws from src/tianji/figures/data.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from benchmarks.harness import (
    ROOT,
    alternate,
    command_line,
    commit,
    machine_facts,
    parser,
    say,
    versions,
)
from benchmarks.links.bench import SIZES, Cell, measure, measure_iperf3
from benchmarks.namespaces import Network, why_not
from tianji.figures.files import write_data
from tianji.gateways.links.keys import LinkKeys

NUM_HOSTS = 4
SIZE_BYTES = 512 << 10
ACTORS = (1, 2, 4, 8, 16)
SAMPLE_TIMES_S = (0.001, 0.01)
MESSAGES = 1500
LIMIT_S = 120.0
LINES_GBIT = (1.0, None)
"""The paper's Ethernet, 125 MB/s, and what the machine does without a limit."""
MORE_SIZES = {"16 KB": 16 << 10, "256 KB": 256 << 10, "1 MB": 1 << 20, "8 MB": 8 << 20}

Points = list[dict[str, Any]]


def collect(network: Network, keys: LinkKeys, actors: int, sample_s: float, messages: int) -> float:
    """Return the seconds to collect so many messages of actors on four hosts."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    options: dict[str, Any] = {
        "cwd": ROOT, "env": {**os.environ, "PYTHONPATH": path}, "text": True,
        "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
    }  # fmt: skip
    command = [sys.executable, "-m", "benchmarks.links.spread"]
    address, size = network.addresses[0], str(SIZE_BYTES)
    last = [str(sample_s), str(actors), str(NUM_HOSTS)]
    words = ["receive", address, size, str(messages), *last]
    receiver = subprocess.Popen([*network.prefix(0), *command, *words], **options)
    senders = [
        subprocess.Popen(
            [*network.prefix(host), *command, "send", str(host), address, size, *last], **options
        )
        for host in range(1, min(NUM_HOSTS, actors))
    ]
    try:
        for process in senders:
            assert process.stdin is not None
            process.stdin.write(keys.to_text())
            process.stdin.close()
        out, err = receiver.communicate(keys.to_text(), timeout=LIMIT_S)
    finally:
        for host in range(NUM_HOSTS):
            network.kill(host)
        for process in (receiver, *senders):
            process.wait()
    if receiver.returncode:
        raise RuntimeError(err)
    return float(json.loads(out)["seconds"])


def measure_hosts(keep: Callable[[Points], None], turns: int, messages: int) -> None:
    points: Points = []
    settings = [(n, sample_s) for n in ACTORS for sample_s in SAMPLE_TIMES_S]
    keys = LinkKeys.make()
    with Network(NUM_HOSTS) as network:
        for (actors, sample_s), turn in alternate(settings, range(turns)):
            took_s = collect(network, keys, actors, sample_s, messages)
            points.append(
                {
                    "actors": actors, "sample_time_s": sample_s, "size_bytes": SIZE_BYTES,
                    "hosts": NUM_HOSTS, "messages": messages, "turn": turn, "encrypted": True,
                    "collection_s_per_10k": took_s / messages * 10_000,
                    "mb_per_s": messages * SIZE_BYTES / took_s / 1e6,
                }
            )  # fmt: skip
            say(f"{actors} actors, {sample_s} s: {points[-1]['mb_per_s']:,.0f} MB/s")
            keep(points)


def measure_sizes(keep: Callable[[Points], None], turns: int, seconds: float) -> None:
    points: Points = []
    SIZES.update(MORE_SIZES)
    keys = LinkKeys.make()
    with Network(2) as hosts:
        for limit in sorted(LINES_GBIT, key=lambda gbit: gbit is not None):
            if limit is not None:
                hosts.limit_gbit(limit)
            cells = [Cell(name, limit, size) for name in ("link", "link-tls") for size in SIZES]
            for cell, turn in alternate([*cells, Cell("iperf3", limit, "")], range(turns)):
                if cell.contestant == "iperf3":
                    rate = measure_iperf3(hosts, max(1.0, seconds))
                else:
                    rate = measure(hosts, cell, keys, sys.executable, seconds)
                points.append(
                    {
                        "contestant": cell.contestant, "limit_gbit": limit, "turn": turn,
                        "size_bytes": SIZES.get(cell.size), "mb_per_s": rate,
                    }
                )  # fmt: skip
                say(f"{cell.contestant}, {limit}, {cell.size}: {rate:,.0f} MB/s")
                keep(points)


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("which", choices=("5c", "5d"))
    made.add_argument("--turns", type=int, default=3)
    args = made.parse_args()
    if reason := why_not():
        say(f"This needs network namespaces: {reason}.")
        return 1
    name = f"tianji-{args.which}"
    out = args.out or (None if args.quick else ROOT / f"src/tianji/figures/data/{name}.json")
    facts = {
        "figure": name,
        "command": command_line("benchmarks.links.figure"),
        "commit": commit(),
        "machine": machine_facts(),
        "versions": versions(),
    }

    def keep(points: Points) -> None:
        if out is not None:
            write_data({**facts, "points": points}, out)

    turns = 1 if args.quick else args.turns
    if args.which == "5c":
        measure_hosts(keep, turns, 100 if args.quick else MESSAGES)
    else:
        measure_sizes(keep, turns, 0.3 if args.quick else 1.0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
