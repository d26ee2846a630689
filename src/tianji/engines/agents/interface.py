"""AgentHandle: an agent as its head sees it, however it is reached."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import IntEnum
from typing import TypeAlias

from tianji.config.machine import Machine, machine_from_json
from tianji.engines.agents.addresses import Invitation
from tianji.engines.agents.messages import Answer, Door, Question
from tianji.engines.agents.network import NetworkSpeed
from tianji.engines.agents.spanning import Expected
from tianji.errors import TianjiError


class HostLost(TianjiError):
    """An agent does not answer any more: its process or its host is gone."""


class RunLost(TianjiError):
    """A host is gone without which the run cannot go on, because no other can take its place."""


class Call(IntEnum):
    """What a head may ask of an agent. Agent.answer does it."""

    START = 1
    POLL = 2
    STOP = 3
    MACHINE = 4
    EXPECT = 5
    VISIT = 6
    LISTEN = 7
    MEASURE = 8


class AgentHandle(ABC):
    """An agent, wherever it is. Every call may raise HostLost or RunLost."""

    host: str
    """The name of its host, for people."""
    address: str
    """The address at which other hosts reach it; empty: not known."""

    @abstractmethod
    def call(self, call: Call, words: bytes, wait_s: float = 0.0) -> bytes:
        """Ask the agent, and wait for its answer.

        wait_s: how long the agent may wait before it answers."""

    @abstractmethod
    def close(self) -> None:
        """End the agent and everything that it has started."""

    def start(self, order: bytes) -> Door:
        """Start what the encoded GroupOrder says; return where others may connect."""
        return Door.decode(self.call(Call.START, order))

    def poll(self, question: Question) -> Answer:
        return Answer.decode(self.call(Call.POLL, question.encode(), question.timeout_s))

    def stop(self, level: int) -> None:
        self.call(Call.STOP, json.dumps(level).encode())

    def machine(self) -> Machine:
        """Return the cores and the memory of its host."""
        return machine_from_json(self.call(Call.MACHINE, b"").decode())

    def expect(self, host: int) -> Expected:
        """Let a host with actors of the agent's group connect."""
        return Expected(*json.loads(self.call(Call.EXPECT, json.dumps(host).encode())))

    def visit(self, invitation: Invitation) -> dict[str, str]:
        """Return how its host reaches the head (addresses.py)."""
        reached: dict[str, str] = json.loads(self.call(Call.VISIT, invitation.encode()))
        return reached

    def measure_from(self, other: AgentHandle, secret: bytes) -> NetworkSpeed:
        """Measure the network from another agent's host to this one (network.py)."""
        listening = {"address": self.address, "secret": secret.hex()}
        door = Door.decode(self.call(Call.LISTEN, json.dumps(listening).encode()))
        asked = json.dumps({"door": door, "secret": secret.hex()}).encode()
        return NetworkSpeed(*json.loads(other.call(Call.MEASURE, asked)))


StartAgent: TypeAlias = Callable[[int, Callable[[], bool]], AgentHandle | None]
"""Starts the agent with this number when a host is free, unless it is not wanted any more by then.
A group has as many agents as it lives on hosts."""
