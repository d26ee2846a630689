"""Peers with a GPU each: NCCL adds up what is on the GPUs, other peers what is in host memory.

    peers = on_own_gpus(peers, device)        # unchanged where not every rank has a GPU of its own

All ranks decide the same, because each of them sees the GPUs of all. NCCL is neither authenticated
nor encrypted, as gloo. Where a rank dies, NCCL ends the processes of the others, which start again.
"""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, distributed

from tianji.channels.peers.gloo import GlooPeers
from tianji.channels.peers.interface import Peers, gathered
from tianji.channels.peers.shared import SharedPeers

_torch: Any = distributed
"""Untyped: the library's type stubs lack half of what is used here."""
STORE = "nccl"
"""Under this key, rank 0 tells the others where its store is."""
NO_GPU = 0


def on_own_gpus(peers: GlooPeers | SharedPeers, device: str) -> Peers:
    """Return peers that use NCCL, if every rank has a GPU of its own; else the same peers.

    device: where this rank's gradients are."""
    gpus = [int(gpu) for (gpu,) in gathered(peers, [gpu_number(device)])]
    return NcclPeers(peers, device) if are_own(gpus) else peers


def gpu_number(device: str) -> int:
    """Return a number that no other GPU has, on any host; NO_GPU where NCCL cannot be used."""
    is_there = torch.device(device).type == "cuda" and _torch.is_nccl_available()
    if not is_there:
        return NO_GPU
    uuid = str(torch.cuda.get_device_properties(device).uuid)
    return 1 + int.from_bytes(hashlib.sha256(uuid.encode()).digest()[:6], "little")


def are_own(gpus: Sequence[int]) -> bool:
    """Return whether every rank has a GPU, and no two ranks the same."""
    return NO_GPU not in gpus and len(set(gpus)) == len(gpus)


class NcclPeers:
    """One rank's end. A sum on the GPU is queued there: the calling thread does not wait for it."""

    def __init__(self, on_hosts: GlooPeers | SharedPeers, device: str) -> None:
        """on_hosts: the same ranks, which add up what is in host memory."""
        self.rank = on_hosts.rank
        self.num_ranks = on_hosts.num_ranks
        self._on_hosts = on_hosts
        self._store = _open_store(on_hosts)
        options = _torch.ProcessGroupNCCL.Options()
        options._timeout = timedelta(seconds=on_hosts.timeout_s)
        with torch.cuda.device(device):
            self._group: Any = _torch.ProcessGroupNCCL(
                self._store, self.rank, self.num_ranks, options
            )
            self.add(torch.zeros(1, device=device))  # it connects on first use
            torch.cuda.synchronize(device)

    def add(self, values: Tensor) -> None:
        if values.is_cuda:
            self._group.allreduce([values]).wait()  # what is queued on the GPU next waits for it
        else:
            self._on_hosts.add(values)

    def close(self) -> None:
        """Leave the group."""
        self._group = None
        self._on_hosts.close()


def _open_store(ranks: GlooPeers | SharedPeers) -> Any:
    """Open a store at rank 0's address, at a free port, through which NCCL connects."""
    cards, name, timeout = ranks.cards, ranks.name, timedelta(seconds=ranks.timeout_s)
    if ranks.rank:
        host, _, port = cards.get(name, STORE, ranks.timeout_s).decode().rpartition(":")
        return _torch.TCPStore(host, int(port), is_master=False, timeout=timeout)
    with socket.create_server((ranks.host, 0)) as listener:
        port = listener.getsockname()[1]
        store = _torch.TCPStore(
            ranks.host,
            port,
            is_master=True,
            timeout=timeout,
            wait_for_workers=False,
            master_listen_fd=listener.detach(),
        )
    cards.put(name, STORE, f"{ranks.host}:{port}".encode())
    return store
