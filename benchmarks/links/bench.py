"""How fast do items move between two hosts, in clear and encrypted, against iperf3 and a bare loop?

sudo .venv/bin/python -m benchmarks.links.bench           about 12 minutes
sudo .venv/bin/python -m benchmarks.links.bench --quick
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from typing import NamedTuple

from benchmarks.harness import ROOT, Report, alternate, median, parser, ratio, say
from benchmarks.namespaces import Network, why_not
from tianji.gateways.links.keys import LinkKeys

SIZES = {"4 KB": 4 << 10, "64 KB": 64 << 10, "512 KB": 512 << 10, "2 MB": 2 << 20}
LARGE = ("512 KB", "2 MB")
LIMITS_GBIT = (None, 1.0, 5.0)
CONTESTANTS = ("bare", "link", "tls", "link-tls", "zmq", "curve")
NUM_TURNS = 3
SECONDS = 1.5
START_S = 30.0


class Cell(NamedTuple):
    """One figure: who, on what link, with what items."""

    contestant: str
    limit_gbit: float | None
    size: str


def python_with_zmq() -> str | None:
    """The interpreter that has pyzmq: ours, or the one of the peers."""
    for python in (sys.executable, str(ROOT / ".peers/bin/python")):
        if shutil.which(python) is None:
            continue
        found = subprocess.run([python, "-c", "import zmq"], capture_output=True, check=False)
        if found.returncode == 0:
            return python
    return None


def measure(hosts: Network, cell: Cell, keys: LinkKeys, python: str, seconds: float) -> float:
    """MB/s of items that arrived, complete and in order."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    words = [cell.contestant, hosts.addresses[1], str(SIZES[cell.size]), str(seconds)]
    processes = []
    for host, side in ((1, "receive"), (0, "send")):
        command = [python, "-m", "benchmarks.links.end", side, *words]
        process = hosts.start(host, command, env={**os.environ, "PYTHONPATH": path}, cwd=ROOT)
        assert process.stdin is not None
        process.stdin.write(keys.to_text())
        process.stdin.close()
        process.stdin = None
        processes.append(process)
    answers = [process.communicate(timeout=seconds + START_S) for process in processes]
    if any(process.returncode for process in processes):
        raise RuntimeError(f"{cell}: {answers[0][1]}{answers[1][1]}")
    return float(json.loads(answers[0][0])["mb_per_s"])


def measure_iperf3(hosts: Network, seconds: float) -> float:
    server = hosts.start(1, ["iperf3", "-s", "-1"])
    time.sleep(0.3)
    client = hosts.start(0, ["iperf3", "-c", hosts.addresses[1], "-t", str(seconds), "-J"])
    answer, _ = client.communicate(timeout=seconds + START_S)
    server.communicate(timeout=START_S)
    return float(json.loads(answer)["end"]["sum_received"]["bits_per_second"]) / 8e6


def line(limit_gbit: float | None) -> str:
    return "no limit" if limit_gbit is None else f"{limit_gbit:g} Gbit/s"


def main() -> int:
    args = parser(__doc__.splitlines()[0] if __doc__ else "").parse_args()
    reason = why_not() or ("" if shutil.which("iperf3") else "iperf3 is not installed")
    if reason:
        say(f"This benchmark needs two network namespaces and iperf3: {reason}.")
        return 1
    report = Report("links", args, ["pyzmq"])
    zmq_python = python_with_zmq()
    contestants = [name for name in CONTESTANTS if zmq_python or name not in ("zmq", "curve")]
    report.note(zmq="measured" if zmq_python else "not measured: pyzmq is not installed")
    sizes = ["64 KB"] if args.quick else list(SIZES)
    seconds, turns = (0.3, 1) if args.quick else (SECONDS, NUM_TURNS)
    keys = LinkKeys.make()
    found: dict[Cell, list[float]] = defaultdict(list)
    with Network(2) as hosts:
        for limit in LIMITS_GBIT:
            if limit is not None:
                hosts.limit_gbit(limit)
            cells = [Cell(name, limit, size) for name in contestants for size in sizes]
            cells.append(Cell("iperf3", limit, ""))
            for cell, turn in alternate(cells, range(turns)):
                if cell.contestant == "iperf3":
                    rate = measure_iperf3(hosts, max(1.0, seconds))
                else:
                    is_zmq = cell.contestant in ("zmq", "curve")
                    python = zmq_python if is_zmq and zmq_python else sys.executable
                    rate = measure(hosts, cell, keys, python, seconds)
                found[cell].append(rate)
                figures = {"limit_gbit": limit, "size": cell.size, "mb_per_s": rate}
                report.add(cell.contestant, turn, figures)
            say(f"{line(limit)}: done")
    show(report, found, contestants, sizes)
    return report.finish()


def show(
    report: Report, found: dict[Cell, list[float]], contestants: list[str], sizes: list[str]
) -> None:
    def rate(name: str, limit: float | None, size: str = "") -> float | None:
        return median(found.get(Cell(name, limit, size), []))

    for limit in LIMITS_GBIT:
        iperf3 = rate("iperf3", limit)
        rows = [["iperf3", *[f"{iperf3:.0f}" for _ in sizes]]]
        for name in contestants:
            rows.append([name, *[f"{rate(name, limit, size):.0f}" for size in sizes]])
        report.table(f"{line(limit)}: MB/s, medians", ["", *sizes], rows)
    for size in (size for size in LARGE if size in sizes):
        for limit in (1.0, 5.0):
            share = ratio(rate("link", limit, size), rate("iperf3", limit))
            report.check(f"link / iperf3, {line(limit)}, {size}, in clear", share, ">=", 0.9)
        share = ratio(rate("link-tls", 1.0, size), rate("iperf3", 1.0))
        report.check(f"link / iperf3, 1 Gbit/s, {size}, encrypted", share, ">=", 0.9)
        shown = ratio(rate("link-tls", 5.0, size), rate("iperf3", 5.0)) or 0.0
        print(f"shown   link / iperf3, 5 Gbit/s, {size}, encrypted: {shown:.3g}")
        share = ratio(rate("link", None, size), rate("bare", None, size))
        report.check(f"link / bare loop, no limit, {size}, in clear", share, ">=", 0.7)


if __name__ == "__main__":
    raise SystemExit(main())
