"""What a person asks a sweep for, checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tianji.config.overrides import Resolved, resolve
from tianji.config.run import RunConfig
from tianji.config.settings import list_settings
from tianji.config.values import Assignment, assign_all
from tianji.defaults import choose
from tianji.defaults.names import with_full_ids
from tianji.errors import UsageError
from tianji.sweep.objective import Asked, Objective, choose_objective
from tianji.sweep.space import HOW, Search, check_searches, parse_search
from tianji.sweep.usual import in_words, usual_searches

EXAMPLE = "tianji sweep cartpole-ppo --trials 20 --search learning_rate=1e-4:1e-2:log"
USUAL = "Without --search, the usual settings are searched:"


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """A sweep over one preset. `with_values` makes the config of a trial."""

    asked: tuple[Assignment, ...]
    base: Resolved
    searches: tuple[Search, ...]
    objective: Objective
    num_trials: int
    num_jobs: int | None
    """Trials at the same time, at most; None: as many as the cores allow."""
    prune: bool
    command: str
    """What a person types for it."""
    notes: tuple[str, ...] = ()
    """What a person is told before it starts."""

    @property
    def config(self) -> RunConfig:
        """The settings that all trials start from."""
        return self.base.config

    @property
    def written(self) -> dict[str, list[str]]:
        """The ends or choices of every setting that is searched, by its short name."""
        return {one.name: [*one.corners, *_marks(one)] for one in self.searches}

    def with_values(self, values: Mapping[str, str]) -> RunConfig:
        """Return the config with these values, by path; UsageError if they do not fit together."""
        more = [Assignment(f"--{path}", text, is_text=True) for path, text in values.items()]
        return resolve(self.base.base, [*self.asked, *more]).config


def _marks(one: Search) -> list[str]:
    return ["log"] if getattr(one, "is_log", False) else []


def make_request(
    preset: str | None,
    searched: Sequence[str],
    asked: Sequence[Assignment],
    num_trials: int,
    num_jobs: int | None = None,
    objective: Asked = "auto",
    prune: bool = True,
    command: str = "",
) -> SweepRequest:
    """Check everything that can be checked without running; UsageError names all mistakes.

    searched: what `--search` says, `key=low:high[:log]` or `key=a,b,c`; empty: the usual settings
    of the algorithm. asked: settings of all trials.
    """
    base = choose.resolve(preset, asked)
    asked, _ = with_full_ids(asked)  # trials have the environment of `base`
    config = base.config
    if config.engine in ("ray", "mpi"):
        raise UsageError(
            f"engine = {config.engine}: a sweep runs on this machine. Use --engine local, inline "
            "or virtual."
        )
    given: dict[str, Any] = {}
    assign_all(given, asked, config.algorithm.name)
    settings = list_settings(type(config.algorithm))
    searches = tuple(parse_search(text, settings) for text in searched)
    notes = base.notes
    if not searches:
        searches = usual_searches(config, given)
        notes = (*notes, f"{USUAL} {in_words(searches)}.")
    if not searches:
        raise UsageError(
            f"Nothing is searched: what is searched without --search is set. {HOW} For example: "
            f"`{EXAMPLE}`."
        )
    check_searches(searches, [*given], lambda one: resolve(base.base, [*asked, one]))
    chosen = choose_objective(objective, config)
    return SweepRequest(
        tuple(asked), base, searches, chosen, num_trials, num_jobs, prune, command, notes
    )
