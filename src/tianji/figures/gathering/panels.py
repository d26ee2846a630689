"""The panels of the nigt figures: tasks, laws of time, methods, and the runs that they need.

A run is a method on a task with one order of arrivals. Laws with the same order differ only in the
duration of a round, so they share runs: the synchronous method is the same under every law, the
others under all laws with equal computation times whose messages take a time proportional to them.
`grid.py` says when the rounds of a run end under a law.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

SEEDS = (1, 2, 3, 4, 5)
ETA = 0.1
M = 20
Compute: TypeAlias = Literal["equal", "sqrt", "given"]
Network: TypeAlias = Literal["none", "sqrt", "sqrt-size"]


@dataclass(frozen=True, slots=True)
class Law:
    """The time that gradients and messages take, in units of time."""

    compute: Compute
    network: Network = "none"
    given: tuple[float, ...] = ()

    @property
    def label(self) -> str:
        h = {"equal": "$h_i = 1$", "sqrt": r"$h_i = \sqrt{i}$"}
        kappa = {
            "none": r"$\kappa_i = 0$", "sqrt": r"$\kappa_i = \sqrt{i}$",
            "sqrt-size": r"$\kappa_i = \sqrt{i}\,d^{1/4}$",
        }  # fmt: skip
        listed = ", ".join(f"{value:g}" for value in self.given)
        return f"{h.get(self.compute, f'$h = ({listed})$')}, {kappa[self.network]}"


EQUAL, UNEQUAL = Law("equal"), Law("sqrt", "sqrt")
SLOW_NETWORK, NO_NETWORK = Law("sqrt", "sqrt-size"), Law("sqrt")
TEN_TIMES = Law("given", given=(1.0, 10.0))


@dataclass(frozen=True, slots=True)
class Task:
    """An environment, and how long one run of it is.

    num_parameters: parameters of the paper's policy, its d.
    us_per_step: duration of a step with inference on one of 16 busy threads, for estimates.
    steps_per_gradient: mean over a run, for estimates.
    is_twin: half of the actors see the state negated, and a bit that says so.
    """

    env: str
    horizon: int
    num_parameters: int
    us_per_step: float
    steps_per_gradient: float
    is_twin: bool = False


REACHER = Task("Reacher-v4", 50, 5188, 130.0, 50.0)
HOPPER = Task("Hopper-v4", 500, 5318, 240.0, 100.0)
WALKER = Task("Walker2d-v4", 500, 6092, 250.0, 135.0)
HUMANOID = Task("Humanoid-v4", 500, 30498, 650.0, 50.0)
REACHER_TWINS = replace(REACHER, num_parameters=5252, is_twin=True)
HOPPER_TWINS = replace(HOPPER, num_parameters=5382, is_twin=True)

HOMOGENEOUS = ("rennala-nigt", "sync-nigt", "afedpg")
HETEROGENEOUS = ("malenia-nigt", "afedpg", "rennala-nigt")
COUNTED = ("rennala-nigt", "malenia-nigt")  # methods with a fixed number M of gradients in a round


@dataclass(frozen=True, slots=True)
class Panel:
    """One diagram: methods on a task under a law.

    rounds: rounds of the first method; the panel ends with the last of them.
    counts: values of M that are tried.
    more: methods with exponents of step sizes that are tried in addition to CHOICES.
    """

    task: Task
    law: Law
    num_actors: int
    rounds: int
    methods: tuple[str, ...] = HOMOGENEOUS
    counts: tuple[int, ...] = (M,)
    more: tuple[tuple[str, int], ...] = ()

    @property
    def name(self) -> str:
        twin = "-twins" if self.task.is_twin else ""
        return f"{self.task.env}{twin}-{self.num_actors}-{self.law.compute}-{self.law.network}"


def _panels(task: Task, rounds: int, *laws: Law) -> tuple[Panel, ...]:
    return tuple(Panel(task, law, 10, rounds) for law in laws)


def _hundred(law: Law) -> Panel:
    """Try more than elsewhere: a round with fewer gradients than actors drops most work, and
    AFedPG, with its many rounds, would choose the smallest step size of CHOICES."""
    return Panel(REACHER, law, 100, 120, counts=(20, 50, 100), more=(("afedpg", -11),))


FIGURES: dict[str, tuple[Panel, ...]] = {
    "nigt-1": _panels(HUMANOID, 150, EQUAL, UNEQUAL, SLOW_NETWORK),
    "nigt-2": (*_panels(REACHER, 250, EQUAL, UNEQUAL), *_panels(HOPPER, 100, EQUAL, UNEQUAL)),
    "nigt-3": (
        *_panels(REACHER, 250, SLOW_NETWORK), *_panels(HOPPER, 100, SLOW_NETWORK),
        *_panels(WALKER, 80, SLOW_NETWORK),
    ),
    "nigt-4": (_hundred(EQUAL),), "nigt-5": (_hundred(NO_NETWORK),),
    "nigt-heterogeneous": (
        Panel(REACHER_TWINS, TEN_TIMES, 2, 300, HETEROGENEOUS),
        Panel(HOPPER_TWINS, TEN_TIMES, 2, 40, HETEROGENEOUS),
    ),
}  # fmt: skip


class Choice(NamedTuple):
    """The tuned settings.

    exponent: the step size is 2 to this power.
    m: gradients of a round, for the methods in COUNTED.
    """

    exponent: int
    eta: float = ETA
    m: int = M


def _steps(*exponents: int) -> tuple[Choice, ...]:
    return tuple(Choice(exponent) for exponent in exponents)


# Step sizes that are tried, out of the paper's 2^-10 ... 2^-1; more rounds need smaller ones.
CHOICES = {
    **dict.fromkeys(("rennala-nigt", "malenia-nigt", "sync-nigt"), _steps(-8, -7, -6, -5, -4)),
    "afedpg": _steps(-10, -9, -8, -7, -6),
}


@dataclass(frozen=True, slots=True)
class Trial:
    """One run.

    order: the law that decides the order of arrivals.
    """

    task: Task
    method: str
    num_actors: int
    order: Law
    choice: Choice
    seed: int
    num_rounds: int

    @property
    def name(self) -> str:
        """Return the name of the run's file."""
        task, choice = self.task.env + ("-twins" if self.task.is_twin else ""), self.choice
        tuned = f"step{choice.exponent}_eta{choice.eta:g}_m{choice.m}"
        return f"{task}_{self.method}_{self.num_actors}_{self.order.compute}_{tuned}_{self.seed}"


def order_of(method: str, law: Law) -> Law:
    """Return the law with free messages that has the same order of arrivals."""
    return Law("equal") if method == "sync-nigt" else Law(law.compute, given=law.given)
