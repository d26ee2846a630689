"""MPI in one process: ranks that send each other bytes through queues."""

from __future__ import annotations

import queue
from types import SimpleNamespace

import numpy as np


class FakeMpi:
    """Stands in for the module mpi4py.MPI, as one rank sees it."""

    BYTE, ANY_SOURCE, ANY_TAG = "byte", -1, -1
    Exception = OSError

    def __init__(self, rank: int, queues: list[queue.SimpleQueue]) -> None:
        self.COMM_WORLD = self
        self.rank, self.size = rank, len(queues)
        self._queues = queues
        self.is_cut = False
        """Whether this rank has lost its network."""

    @staticmethod
    def ranks(count: int) -> list[FakeMpi]:
        queues: list[queue.SimpleQueue] = [queue.SimpleQueue() for _ in range(count)]
        return [FakeMpi(rank, queues) for rank in range(count)]

    def Status(self):
        return SimpleNamespace(found=None)

    def Isend(self, what, rank, tag):
        if not self.is_cut:
            self._queues[rank].put((self.rank, tag, bytes(what[0])))
        return SimpleNamespace(Test=lambda: not self.is_cut)

    def Improbe(self, source, tag, status):
        try:
            source, tag, words = self._queues[self.rank].get_nowait()
        except queue.Empty:
            return None
        status.Get_count = lambda kind: len(words)
        status.Get_tag = lambda: tag
        status.Get_source = lambda: source

        def receive(what):
            what[0][:] = np.frombuffer(words, np.uint8)
            return SimpleNamespace(Test=lambda: True)

        return SimpleNamespace(Irecv=receive)
