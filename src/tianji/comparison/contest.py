"""What is compared: contestants, each with a config of its own, and the seeds of their runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tianji.comparison.turns import alternate
from tianji.config.run import RunConfig
from tianji.errors import UsageError


@dataclass(frozen=True, slots=True)
class Contestant:
    """Contestant("impala", config, about="...", differences=("The loss is ...",))"""

    name: str
    config: RunConfig
    about: str = ""
    """What it is, in a sentence."""
    differences: tuple[str, ...] = ()
    """What differs beside the architecture, in sentences: the loss, a correction."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One run of a contest. Its config has its seed, and its name as that of the folder."""

    name: str
    contestant: str
    config: RunConfig


@dataclass(frozen=True)
class Contest:
    """Contest("cartpole-ppo", (tianji, impala), seeds=(1, 2, 3), command="tianji compare ...")"""

    title: str
    contestants: tuple[Contestant, ...]
    """The first is the reference: the others are compared with it."""
    seeds: tuple[int, ...]
    command: str
    """What a person types to run it."""

    @property
    def reference(self) -> Contestant:
        return self.contestants[0]

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """All runs, in the order in which they take turns."""
        return tuple(_turn(one, seed) for one, seed in alternate(self.contestants, self.seeds))


def _turn(contestant: Contestant, seed: int) -> Turn:
    name = f"{contestant.name}-s{seed}"
    config = contestant.config.model_copy(update={"seed": seed, "run": name})
    return Turn(name, contestant.name, config)


def refusal(mistakes: Mapping[str, str], num_contestants: int) -> UsageError:
    """Return one error for the mistakes by contestant. One that all share is told once."""
    texts = set(mistakes.values())
    if len(mistakes) == num_contestants and len(texts) == 1:
        return UsageError(texts.pop())
    return UsageError("\n".join(f"{name}: {text}" for name, text in mistakes.items()))
