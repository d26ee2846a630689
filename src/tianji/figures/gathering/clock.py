"""When the rounds of a method end under a law, by the simulation of `tianji simulate`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import count, islice
from typing import NamedTuple

from tianji.algorithms.interface import Gather, Rule
from tianji.balance.given_times import Times
from tianji.config.run import TimesConfig
from tianji.figures.gathering.panels import Law, M, Panel
from tianji.virtual.rounds import Round, simulate_rounds

_RULES: Mapping[str, Rule] = {
    "rennala-nigt": "first", "malenia-nigt": "harmonic", "sync-nigt": "barrier", "afedpg": "every",
}  # fmt: skip
_ENDLESS = 10**9


def rounds_of(
    method: str, law: Law, num_actors: int, m: int, num_parameters: int = 0
) -> Iterator[Round]:
    """Yield the rounds of a method, endlessly."""
    size = num_parameters if law.network == "sqrt-size" else 0
    known, more = _simulation(method, law, num_actors, m, size)
    for number in count():
        if number == len(known):
            known.append(next(more))
        yield known[number]


@cache
def _simulation(
    method: str, law: Law, num_actors: int, m: int, num_parameters: int
) -> tuple[list[Round], Iterator[Round]]:
    """Return the rounds simulated so far, and the following ones: panels share simulations."""
    gather = Gather(_RULES[method], m, m)
    config = TimesConfig(law=law.compute, compute=law.given, network=law.network)
    times = Times(config, num_actors, num_parameters, seed=0)
    return [], simulate_rounds(gather, times, num_actors, 1, _ENDLESS)


def end_s(rounds: Iterator[Round], num_rounds: int) -> float:
    """Return when the last of this many rounds ends."""
    return next(islice(rounds, num_rounds - 1, None)).finish_s


@cache
def length_s(panel: Panel) -> float:
    """Return the duration of a panel: the time that its first method takes for its rounds."""
    rounds = rounds_of(panel.methods[0], panel.law, panel.num_actors, M, panel.task.num_parameters)
    return end_s(rounds, panel.rounds)


class Work(NamedTuple):
    """The rounds and gradients of a method within the duration of a panel."""

    finish_s: tuple[float, ...]
    """The end of each round."""
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
