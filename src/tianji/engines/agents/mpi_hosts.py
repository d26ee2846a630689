"""The hosts of the MPI engine: one rank for each host, started by `mpirun` or `srun`.

Rank 0 is the head. Every rank is the agent of its host, rank 0 too. Messages are bytes with a tag:
the head asks and an agent answers, so that a rank never waits for a message that nobody sends.
MPI is neither authenticated nor encrypted: it needs a network that can be trusted.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tianji.config.machine import Machine, machine_from_json, read_machine
from tianji.engines.agents.agent import Agent
from tianji.engines.agents.interface import AgentHandle
from tianji.engines.agents.messages import Answer, Door, Question
from tianji.engines.agents.spanning import Expected
from tianji.errors import TianjiError, UsageError
from tianji.types import Array

HEAD = 0
SHORTEST_NAP_S, LONGEST_NAP_S = 0.0002, 0.02
"""MPI has no wait that sleeps, so an agent looks for messages, less and less often."""


class Tag(IntEnum):
    """What a message is about. Answers have the tag of their question."""

    START = 1
    POLL = 2
    STOP = 3
    MACHINE = 4
    END = 5
    EXPECT = 6


def begin() -> None:
    """Begin as a rank of an MPI job. Ranks other than 0 serve the head, and end with it."""
    world = _world()
    if remark := _bound(world.rank, len(os.sched_getaffinity(0)), os.cpu_count() or 1):
        sys.stderr.write(f"{remark}\n")
    if world.rank != HEAD:
        _serve(world)
    atexit.register(_end_all, world)


def _bound(rank: int, usable: int, cores: int) -> str:
    """Return a sentence where a rank may use a part of its host; "" where it may use all."""
    if usable == cores:
        return ""
    return (
        f"Rank {rank} may use {usable} of {cores} cores. If that is not meant, start mpirun with "
        "--bind-to none, or srun with --cpus-per-task: a rank is a whole host here."
    )


class MpiHosts:
    """The hosts of all ranks; each runs one agent at most."""

    def __init__(self, num_agents: int) -> None:
        if num_agents > self.count:
            raise UsageError(
                f"The run needs {num_agents} hosts (num_groups, times 1 + actor_hosts), and the "
                f"MPI job has {self.count} ranks, one for each host. Start it with -n "
                f"{num_agents}, or lower --num-groups or --actor-hosts."
            )
        self.places: dict[int, str] = {}

    @property
    def machine(self) -> Machine:
        return read_machine()

    agents_each = 1

    @property
    def count(self) -> int:
        """Return the number of ranks."""
        return int(_world().size)

    def start(self, number: int, is_wanted: Callable[[], bool]) -> AgentHandle:
        agent = OwnAgent() if number == HEAD else RankAgent(_world(), rank=number)
        self.places[number] = agent.host
        return agent


class OwnAgent:
    """The agent of the head's host, in the head's process."""

    def __init__(self) -> None:
        self._agent = Agent()
        self.host = f"rank 0 ({socket.gethostname()})"
        self.address = ""

    def start(self, order: bytes) -> Door:
        return Door.decode(self._agent.start(order))

    def expect(self, host: int) -> Expected:
        return Expected(*json.loads(self._agent.expect(host)))

    def machine(self) -> Machine:
        return read_machine()

    def poll(self, question: Question) -> Answer:
        return Answer.decode(self._agent.poll(question.encode()))

    def stop(self, level: int) -> None:
        self._agent.stop(level)

    def close(self) -> None:
        """The group has ended, or ends with this process."""


class RankAgent:
    """The agent of another rank, as the head sees it."""

    def __init__(self, world: Any, rank: int) -> None:
        self._world = world
        self._rank = rank
        self._asking = threading.Lock()
        self.host = f"rank {rank}"
        self.address = ""

    def start(self, order: bytes) -> Door:
        return Door.decode(self._ask(Tag.START, order))

    def expect(self, host: int) -> Expected:
        return Expected(*json.loads(self._ask(Tag.EXPECT, json.dumps(host).encode())))

    def machine(self) -> Machine:
        return machine_from_json(self._ask(Tag.MACHINE, b"").decode())

    def poll(self, question: Question) -> Answer:
        return Answer.decode(self._ask(Tag.POLL, question.encode()))

    def stop(self, level: int) -> None:
        self._ask(Tag.STOP, json.dumps(level).encode())

    def close(self) -> None:
        """The rank stays, ready for another group."""

    def _ask(self, tag: Tag, words: bytes) -> bytes:
        with self._asking:
            _send(self._world, self._rank, tag, words)
            found = _receive(self._world, self._rank)
        if not found.words.startswith(OK):
            raise TianjiError(f"On {self.host}: {found.words[len(FAILED) :].decode()}")
        return found.words[len(OK) :]


OK, FAILED = b"+", b"-"
"""First byte of an answer: what was asked was done, or the error follows."""


class _Message(NamedTuple):
    tag: Tag
    words: bytes


def _serve(world: Any) -> NoReturn:
    """Do what the head asks until it ends."""
    agent = Agent()
    while (asked := _receive(world, HEAD)).tag != Tag.END:
        if asked.tag == Tag.START:
            agent = Agent()
        try:
            answer = OK + _answers(agent)[asked.tag](asked.words)
        except Exception as error:  # noqa: BLE001 - the head hears of it
            answer = FAILED + f"{type(error).__name__}: {error}".encode()
        _send(world, HEAD, asked.tag, answer)
    sys.exit(0)


def _answers(agent: Agent) -> dict[Tag, Callable[[bytes], bytes]]:
    def start(words: bytes) -> bytes:
        return agent.start(words)

    def expect(words: bytes) -> bytes:
        return agent.expect(json.loads(words))

    def poll(words: bytes) -> bytes:
        return agent.poll(words)

    def stop(words: bytes) -> bytes:
        agent.stop(json.loads(words))
        return b""

    def machine(words: bytes) -> bytes:
        return agent.machine().encode()

    return {
        Tag.START: start,
        Tag.POLL: poll,
        Tag.STOP: stop,
        Tag.MACHINE: machine,
        Tag.EXPECT: expect,
    }


_CALLS = threading.Lock()
"""The head follows each group on a thread of its own, and MPI may allow one call at a time."""


def _send(world: Any, rank: int, tag: Tag, words: bytes) -> None:
    with _CALLS:
        request = world.Isend([np.frombuffer(words, np.uint8), _mpi().BYTE], rank, int(tag))
    _nap_until(request.Test)


def _receive(world: Any, rank: int) -> _Message:
    mpi = _mpi()
    status = mpi.Status()
    _nap_until(lambda: bool(world.Iprobe(rank, mpi.ANY_TAG, status)))
    words: Array = np.empty(status.Get_count(mpi.BYTE), np.uint8)
    with _CALLS:
        world.Recv([words, mpi.BYTE], rank, status.Get_tag())
    return _Message(Tag(status.Get_tag()), words.tobytes())


def _nap_until(is_done: Callable[[], bool]) -> None:
    nap_s = SHORTEST_NAP_S
    while True:
        with _CALLS:
            if is_done():
                return
        time.sleep(nap_s)
        nap_s = min(LONGEST_NAP_S, 1.5 * nap_s)


def _end_all(world: Any) -> None:
    for rank in range(1, world.size):
        _send(world, rank, Tag.END, b"")


def _mpi() -> Any:
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise UsageError(
            "engine is 'mpi', and mpi4py is not installed, or finds no MPI library. Install both "
            "with `pip install 'tianji[mpi]'`, or use --engine local."
        ) from error
    return MPI


def _world() -> Any:
    return _mpi().COMM_WORLD
