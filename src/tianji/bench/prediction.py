"""The collection-time model against the experiment: fitted on one actor, held against all others.

A fit needs, per size, the run of one actor without a sample time, alone (what sending and receiving
take) and beside others like it, up to two for each core (what they take when the machine is full);
and per sample time a run of one actor (how long sampling takes when measured, and what of it is
processor time). Everything else is predicted.

The time to collect a number of messages, and the side that limits it.

Equation 1 of the TianJi paper, with the division by the number of actors that its text implies, and
a third term for machines on which processes share cores:

    T_c = N_s * max( (T_sp + T_sd) / N_A,   T_rv,     T_cpu / cores )
                      the actors            buffer    processors

T_sp: the actor's time to sample one message; T_sd: its time to send it; T_rv: the buffer's time to
receive and keep it; T_cpu: processor time of one message on both sides together. All in seconds.
Cores share caches and memory too: if all are busy, everything takes longer (under_load).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

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


def collection_by_equation_s(
    num_messages: int, costs: MessageCosts, collecting: Collecting
) -> float:
    """Return equation 1 with the division that its text implies, and without a term for cores."""
    found = terms(costs, collecting)
    return num_messages * max(found["actors"], found["buffer"])


def collection_as_printed_s(
    num_messages: int, costs: MessageCosts, collecting: Collecting
) -> float:
    """Return equation 1 as printed, for comparison: its first case is not divided by N_A."""
    busy_s = collecting.sample_s + costs.send_s
    if busy_s / collecting.num_actors > costs.receive_s:
        return num_messages * busy_s
    return num_messages * costs.receive_s


Measurement = dict[str, Any]


class Model:
    """What the one-actor runs among some measurements say about all others."""

    def __init__(
        self,
        points: Iterable[Measurement],
        loaded: Mapping[tuple[int, int], Mapping[str, float]],
        num_cores: int,
    ) -> None:
        """loaded: what `measure_loaded` gave for one actor, by size and number of runs at once."""
        self._num_cores = num_cores
        self._loaded = loaded
        self._alone = {
            (point["size_bytes"], point["sample_time_s"]): point
            for point in points
            if is_fitted_on(point)
        }

    def costs(self, size_bytes: int, num_actors: int, sample_s: float) -> MessageCosts:
        alone = _costs(self._alone[size_bytes, 0.0])
        if num_actors == 1:
            return alone
        num_runs = runs_at_once(num_actors, self._num_cores)
        return alone.under_load(_costs(self._loaded[size_bytes, num_runs]), sample_s)

    def collecting(self, size_bytes: int, num_actors: int, sample_time_s: float) -> Collecting:
        alone, without = self._alone[size_bytes, sample_time_s], self._alone[size_bytes, 0.0]
        extra_us = alone["sender_cpu_us"] - without["sender_cpu_us"]
        return Collecting(
            num_actors, alone["measured_sample_s"], max(0.0, extra_us) / 1e6, self._num_cores
        )

    def predict(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """What the model says of one setting, by the names used in the table."""
        size_bytes, num_actors = point["size_bytes"], point["actors"]
        collecting = self.collecting(size_bytes, num_actors, point["sample_time_s"])
        costs = self.costs(size_bytes, num_actors, collecting.sample_s)
        predicted_s = collection_s(10_000, costs, collecting)
        return {
            "predicted_s_per_10k": predicted_s,
            "equation_s_per_10k": collection_by_equation_s(10_000, costs, collecting),
            "printed_equation_s_per_10k": collection_as_printed_s(10_000, costs, collecting),
            "prediction_error": predicted_s / point["collection_s_per_10k"] - 1.0,
            "is_fitted": is_fitted_on(point),
            "critical_path": critical_path(costs, collecting),
        }

    def saturation(self, size_bytes: int, sample_time_s: float) -> dict[str, Any]:
        """How many actors bring something, and what holds up more of them."""
        collecting = self.collecting(size_bytes, self._num_cores, sample_time_s)
        costs = self.costs(size_bytes, self._num_cores, collecting.sample_s)
        actors = actors_to_saturate(costs, collecting)
        beyond = self.collecting(size_bytes, math.ceil(actors) + 1, sample_time_s)
        return {
            "size_bytes": size_bytes,
            "sample_time_s": sample_time_s,
            "actors": actors,
            "then": critical_path(costs, beyond),
        }


def runs_at_once(num_actors: int, num_cores: int) -> int:
    """How many runs of one actor load the machine as this many actors do."""
    return min(num_actors, 2 * num_cores)


def _costs(figures: Mapping[str, Any]) -> MessageCosts:
    send_s, receive_s = figures["sender_cpu_us"] / 1e6, figures["receiver_cpu_us"] / 1e6
    return MessageCosts(send_s, receive_s, send_s + receive_s)


def is_fitted_on(point: Mapping[str, Any]) -> bool:
    return point["actors"] == 1 and not point["copying"]


def worst_error(points: Sequence[Measurement]) -> float:
    """The largest deviation among the points that were not used for the fit."""
    return max((abs(p["prediction_error"]) for p in points if not p["is_fitted"]), default=0.0)
