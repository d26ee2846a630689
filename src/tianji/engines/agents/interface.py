"""AgentHandle: an agent as its head sees it, however it is reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from tianji.config.machine import Machine
from tianji.engines.agents.messages import Answer, Door, Question
from tianji.engines.agents.spanning import Expected
from tianji.errors import TianjiError


class HostLost(TianjiError):
    """An agent does not answer any more: its process or its host is gone."""


class RunLost(TianjiError):
    """A host is gone without which the run cannot go on, because no other can take its place."""


class AgentHandle(Protocol):
    """An agent, wherever it is. Every call may raise HostLost or RunLost."""

    @property
    def host(self) -> str:
        """Return the name of its host, for people."""
        ...

    @property
    def address(self) -> str:
        """Return the address at which other hosts reach it; empty: not known."""
        ...

    def start(self, order: bytes) -> Door:
        """Start what the encoded GroupOrder says; return where others may connect."""
        ...

    def expect(self, host: int) -> Expected:
        """Let a host with actors of the agent's group connect."""
        ...

    def machine(self) -> Machine:
        """Return the cores and the memory of its host."""
        ...

    def poll(self, question: Question) -> Answer: ...

    def stop(self, level: int) -> None: ...

    def close(self) -> None:
        """End the agent and everything that it has started."""
        ...


StartAgent: TypeAlias = Callable[[int, Callable[[], bool]], AgentHandle | None]
"""Starts the agent with this number when a host is free, unless it is not wanted any more by then.
A group has as many agents as it lives on hosts."""
