"""The time to collect a number of messages, and the side that limits it.

Equation 1 of the TianJi paper, with the division by the number of actors that its text implies, and
a third term for machines on which processes share cores:

    T_c = N_s * max( (T_sp + T_sd) / N_A,   T_rv,     T_cpu / cores )
                      the actors            buffer    processors

T_sp: the actor's time to sample one message; T_sd: its time to send it; T_rv: the buffer's time to
receive and keep it; T_cpu: processor time of one message on both sides together. All in seconds.
Cores share caches and memory too: if all are busy, everything takes longer (under_load).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

CriticalPath: TypeAlias = Literal["actors", "buffer", "processors"]


@dataclass(frozen=True, slots=True)
class MessageCosts:
    """The cost of one message without sampling it; cpu_s: processor time of both sides."""

    send_s: float
    receive_s: float
    cpu_s: float

    def under_load(self, loaded: MessageCosts, sample_s: float) -> MessageCosts:
        """Return the cost for several actors that take `sample_s` between two messages.

        loaded: the cost while every core sends or receives. An actor sees that load for the share
        of its time in which it does not sample.
        """
        busy_s = self.send_s + sample_s
        share = self.send_s / busy_s if busy_s else 1.0
        return MessageCosts(
            self.send_s + share * (loaded.send_s - self.send_s),
            self.receive_s + share * (loaded.receive_s - self.receive_s),
            self.cpu_s + share * (loaded.cpu_s - self.cpu_s),
        )


@dataclass(frozen=True, slots=True)
class Collecting:
    """The actors, the time that each needs to sample a message, and the cores for all.

    sample_cpu_s: processor time of sampling; less than sample_s if an actor waits for something.
    """

    num_actors: int
    sample_s: float
    sample_cpu_s: float
    num_cores: int


def terms(costs: MessageCosts, collecting: Collecting) -> dict[CriticalPath, float]:
    """Return the seconds per message that each side needs if the others take no time."""
    return {
        "actors": (collecting.sample_s + costs.send_s) / collecting.num_actors,
        "buffer": costs.receive_s,
        "processors": (collecting.sample_cpu_s + costs.cpu_s) / collecting.num_cores,
    }


def collection_s(num_messages: int, costs: MessageCosts, collecting: Collecting) -> float:
    """Return T_c.

    >>> costs = MessageCosts(send_s=0.0, receive_s=0.0001, cpu_s=0.0001)
    >>> collection_s(10_000, costs, Collecting(4, sample_s=0.001, sample_cpu_s=0.0, num_cores=8))
    2.5
    """
    return num_messages * max(terms(costs, collecting).values())


def critical_path(costs: MessageCosts, collecting: Collecting) -> CriticalPath:
    """Return the side that limits the collection; of equals, the first one that data passes."""
    found = terms(costs, collecting)
    return max(found, key=lambda side: found[side])


def actors_to_saturate(costs: MessageCosts, collecting: Collecting) -> float:
    """Return the number of actors from which on another side is the limit."""
    found = terms(costs, collecting)
    others = max(found["buffer"], found["processors"])
    return found["actors"] * collecting.num_actors / others if others else float("inf")


def collection_as_printed_s(
    num_messages: int, costs: MessageCosts, collecting: Collecting
) -> float:
    """Return equation 1 as printed, for comparison: its first case is not divided by N_A."""
    busy_s = collecting.sample_s + costs.send_s
    if busy_s / collecting.num_actors > costs.receive_s:
        return num_messages * busy_s
    return num_messages * costs.receive_s
