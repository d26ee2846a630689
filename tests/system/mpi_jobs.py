"""MPI jobs for tests: ranks on this machine, or on hosts of their own (network namespaces)."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from benchmarks.namespaces import Network

BIN = str(Path(sys.executable).parent)
MPIRUN = shutil.which("mpirun", path=BIN) or shutil.which("mpirun")
# A daemon of Open MPI that is cut off is given up after 8 to 10 s, and not after 8 minutes.
KEEPALIVE = {"time": 2, "intvl": 2, "probes": 4}


@lru_cache
def is_open_mpi() -> bool:
    """Return whether the MPI that is installed is Open MPI; else it is MPICH."""
    words = [str(MPIRUN), "--version"]
    return "Open MPI" in subprocess.run(words, capture_output=True, text=True, check=True).stdout


def here(num_ranks: int) -> tuple[str, ...]:
    """Return the words before a command that runs as several ranks on this machine."""
    more = ("--allow-run-as-root", "--oversubscribe", "--bind-to", "none") * is_open_mpi()
    return (str(MPIRUN), *more, "-n", str(num_ranks))


def on_hosts(network: Network, hosts: Sequence[int], folder: Path, shell: Path) -> tuple[str, ...]:
    """Return the words before a command that runs as one rank on each of these hosts of a network;
    `mpirun` itself runs on host 0. The first rank has the folder of this machine, the others have
    another disk in its place.

    shell: path of a script that is written, which starts a command on a host, as ssh does."""
    cases = []
    for host in hosts:
        prefix = shlex.join(network.prefix(host))
        disk = "" if host == hosts[0] else f"mount -t tmpfs none {folder} && cd {folder} && "
        cases.append(f'{network.addresses[host]}) exec {prefix} sh -c "{disk}$*" ;;')
    options = 'while [ "${1#-}" != "$1" ]; do shift; done'
    lines = ["#!/bin/sh", options, "host=$1; shift", "case $host in", *cases, "esac", "exit 255"]
    shell.write_text("\n".join(lines) + "\n")
    shell.chmod(0o755)
    count = ("-n", str(len(hosts)))
    addresses = [network.addresses[host] for host in hosts]
    if not is_open_mpi():
        launcher = ("-launcher", "ssh", "-launcher-exec", str(shell), "-iface", "eth0")
        tcp = ("-genv", "UCX_TLS", "tcp,self")  # it would find out that the hosts are one machine
        hosts = ("-hosts", ",".join(addresses))
        return (*network.prefix(0), str(MPIRUN), *launcher, *hosts, *tcp, *count)
    settings = {"plm_ssh_agent": shell, "prte_if_include": "eth0"}
    settings |= {f"oob_tcp_keepalive_{name}": value for name, value in KEEPALIVE.items()}
    words = [word for name, value in settings.items() for word in ("--prtemca", name, str(value))]
    words += [
        "--mca",
        "btl_tcp_if_include",
        "eth0",
        "--host",
        ",".join(f"{a}:1" for a in addresses),
    ]
    return (*network.prefix(0), str(MPIRUN), "--allow-run-as-root", *words, "--bind-to", "none",
            *count)  # fmt: skip
