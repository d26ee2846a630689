"""When the rounds of a method end under a law: the simulation of `tianji simulate`, no run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import NamedTuple

from tianji.algorithms.interface import Gather, Rule
from tianji.balance.given_times import Times
from tianji.config.run import TimesConfig
from tianji.figures.gathered import Law, M, Panel
from tianji.virtual.rounds import Round, simulate_rounds

_RULES: Mapping[str, Rule] = {
    "rennala-nigt": "first", "malenia-nigt": "harmonic", "sync-nigt": "barrier", "afedpg": "every",
}  # fmt: skip
_ENDLESS = 10**9


def rounds_of(
    method: str, law: Law, num_actors: int, m: int, num_parameters: int = 0
) -> Iterator[Round]:
    """One after the other, without end."""
    gather = Gather(_RULES[method], m, m)
    config = TimesConfig(law=law.compute, compute=law.given, network=law.network)
    times = Times(config, num_actors, num_parameters, seed=0)
    return simulate_rounds(gather, times, num_actors, 1, _ENDLESS)


def end_s(rounds: Iterator[Round], num_rounds: int) -> float:
    """When the last of so many rounds ends."""
    return next(islice(rounds, num_rounds - 1, None)).finish_s


@cache
def length_s(panel: Panel) -> float:
    """How long its first method takes for its rounds; the panel ends there for all."""
    rounds = rounds_of(panel.methods[0], panel.law, panel.num_actors, M, panel.task.num_parameters)
    return end_s(rounds, panel.rounds)


class Work(NamedTuple):
    """What a method does in the time of a panel."""

    finish_s: tuple[float, ...]
    """When each round ends."""
    gradients: int
    discarded: int


@cache
def work_in(panel: Panel, method: str, m: int = M) -> Work:
    finish_s: list[float] = []
    gradients = discarded = 0
    until_s = length_s(panel) * (1 + 1e-9)
    for done in rounds_of(method, panel.law, panel.num_actors, m, panel.task.num_parameters):
        if done.finish_s > until_s:
            break
        finish_s.append(done.finish_s)
        gradients += sum(done.counts.values())
        discarded += done.discarded
    return Work(tuple(finish_s), gradients, discarded)
