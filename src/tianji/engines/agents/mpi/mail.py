"""Mail between the ranks of an MPI job: one thread of each rank makes all MPI calls.

    mail = Mail(mpi, peers={1: "rank 1 (node-7)"})
    mail.send(1, Call.POLL, words)        # returns at once
    message = mail.receive(1)             # waits; raises RunLost if the rank falls silent
    mail.close()                          # when everything has been sent

Messages are bytes with a tag. MPI has no wait that sleeps, so the thread looks for messages, less
and less often while none come. It tells its peers once a second that it is alive, and a peer that
has told nothing for SILENT_S is lost: a host that loses its power or its network says no goodbye.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tianji.engines.agents.interface import RunLost
from tianji.types import Array

SHORTEST_NAP_S, LONGEST_NAP_S = 0.0002, 0.02
MOVING_NAP_S = 0.001
"""Longest nap while a message is on its way, because MPI moves it only when it is called."""
PULSE_S = 1.0
SILENT_S = 11.0
"""Twice as long as a cable may be out (5 s), because TCP tries again after pauses that double; and
shorter than a job that has lost a rank may take to end (15 s)."""
STOPPED_S = 3.0
"""A thread that was away for this long was stopped, with its process or its machine."""
SLOWEST_BYTES_PER_S = 5e6
"""A large message may keep a peer silent for as long as it takes at this rate."""
CLOSE_S = 5.0


ALIVE, END = 100, 101
"""Tags of a sign of life and of the last message; the others are those of calls (interface.py)."""


class Message(NamedTuple):
    """What a rank has sent to another."""

    tag: int
    words: bytes


class _Moving(NamedTuple):
    """A message that MPI is sending or receiving."""

    request: Any
    rank: int
    tag: int
    data: Array


class Mail:
    """What this rank sends to its peers, and what they send. A peer has one message on its way at
    most, apart from ALIVE, so that messages cannot overtake each other."""

    def __init__(self, mpi: Any, peers: Mapping[int, str]) -> None:
        """mpi: the module mpi4py.MPI. peers: ranks, with their names for people."""
        self._mpi = mpi
        self._names = peers
        self._world = mpi.COMM_WORLD
        now = time.monotonic()
        self._heard_s = dict.fromkeys(peers, now)
        self._told_s = dict.fromkeys(self._heard_s, now)
        self._looked_s = now
        self._inbox: dict[int, queue.SimpleQueue[Message | RunLost]] = {
            rank: queue.SimpleQueue() for rank in self._heard_s
        }
        self._outbox: queue.SimpleQueue[tuple[int, int, bytes]] = queue.SimpleQueue()
        self._leaving: list[_Moving] = []
        self._arriving: list[_Moving] = []
        self._abandoned: list[_Moving] = []
        self._wake = threading.Event()
        self._is_closing = False
        self.lost: dict[int, str] = {}
        """Ranks that are gone, and why this is believed."""
        self._thread = threading.Thread(target=self._run, name="mpi-mail", daemon=True)
        self._thread.start()

    def send(self, rank: int, tag: int, words: bytes) -> None:
        self._outbox.put((rank, tag, words))
        self._wake.set()

    def receive(self, rank: int) -> Message:
        """Wait for the next message of a rank."""
        found = self._inbox[rank].get()
        if isinstance(found, RunLost):
            self._inbox[rank].put(found)  # for later calls
            raise found
        return found

    def close(self) -> None:
        """Send what waits, and make no more calls."""
        self._is_closing = True
        self._wake.set()
        self._thread.join(CLOSE_S)

    # All that follows runs on the thread.

    def _run(self) -> None:
        nap_s = SHORTEST_NAP_S
        while not self._is_closing or self._leaving or not self._outbox.empty():
            try:
                has_worked = self._send_waiting() + self._probe() + self._move()
            except self._mpi.Exception as error:  # which peer it was is not known
                for rank in self._heard_s:
                    self._lose(rank, f"MPI has failed: {error}.")
                return
            self._look_at_peers()
            is_moving = bool(self._leaving or self._arriving)
            longest_s = MOVING_NAP_S if is_moving else LONGEST_NAP_S
            nap_s = SHORTEST_NAP_S if has_worked else min(longest_s, 1.5 * nap_s)
            self._wake.wait(nap_s)
            self._wake.clear()

    def _send_waiting(self) -> int:
        count = self._outbox.qsize()
        for _ in range(count):
            rank, tag, words = self._outbox.get()
            data = np.frombuffer(words, np.uint8)
            request = self._world.Isend([data, self._mpi.BYTE], rank, int(tag))
            self._leaving.append(_Moving(request, rank, tag, data))
            self._told_s[rank] = time.monotonic()
        return count

    def _probe(self) -> int:
        mpi, status = self._mpi, self._mpi.Status()
        count = 0
        while (found := self._world.Improbe(mpi.ANY_SOURCE, mpi.ANY_TAG, status)) is not None:
            data: Array = np.empty(status.Get_count(mpi.BYTE), np.uint8)
            request = found.Irecv([data, mpi.BYTE])
            tag = status.Get_tag()
            self._arriving.append(_Moving(request, status.Get_source(), tag, data))
            count += 1
        return count

    def _move(self) -> int:
        """Let MPI move messages; deliver those that have arrived."""
        before = len(self._leaving) + len(self._arriving)
        self._leaving = [moving for moving in self._leaving if not moving.request.Test()]
        still = []
        for moving in self._arriving:
            if not moving.request.Test():
                still.append(moving)
                continue
            self._heard_s[moving.rank] = time.monotonic()
            if moving.tag != ALIVE:
                self._inbox[moving.rank].put(Message(moving.tag, moving.data.tobytes()))
        self._arriving = still
        return before - len(self._leaving) - len(still)

    def _look_at_peers(self) -> None:
        """Tell peers that this rank is alive, and notice those that are not."""
        now, looked_s = time.monotonic(), self._looked_s
        self._looked_s = now
        if now - looked_s > STOPPED_S:
            self._heard_s = dict.fromkeys(self._heard_s, now)
        for rank, heard_s in self._heard_s.items():
            if now - self._told_s[rank] > PULSE_S and rank not in self.lost:
                self.send(rank, ALIVE, b"")
            size = sum(moving.data.size for moving in self._arriving if moving.rank == rank)
            if now - heard_s > SILENT_S + size / SLOWEST_BYTES_PER_S:
                self._lose(rank, f"it has been silent for {SILENT_S:g} s.")

    def _lose(self, rank: int, why: str) -> None:
        if rank not in self.lost:
            self.lost[rank] = why
            # MPI may still read the bytes, so they are kept.
            self._abandoned += [moving for moving in self._leaving if moving.rank == rank]
            self._leaving = [moving for moving in self._leaving if moving.rank != rank]
            self._inbox[rank].put(RunLost(f"Lost {self._names[rank]}: {why}"))
