"""A plan with its origin: a profile that it was solved from, test runs of places, or a rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.envs.build import Probe

if TYPE_CHECKING:
    from tianji.costs.places import PlaceTrials
    from tianji.costs.profile import Profile
    from tianji.planning.solve.solve import Solution


@dataclass(frozen=True, slots=True)
class Solved:
    """What a plan was solved from, and the solution.

    from_cache: all profiles were kept from earlier runs.
    settings: the values chosen for settings that were `auto`, by their path.
    """

    profile: Profile
    solution: Solution
    from_cache: bool
    settings: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Placed:
    """The test runs that decided where inference runs; from_cache: of an earlier plan."""

    trials: PlaceTrials
    from_cache: bool

    @property
    def note(self) -> str:
        """Return what was measured and when, in words."""
        origin = "Measured earlier on this machine." if self.from_cache else "Measured now."
        return " ".join((*self.trials.reasons, origin))


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan and its origin.

    config: what the person asked, with numbers in place of every number that was `auto`.
    note: where the plan comes from, in words; empty if there was nothing to decide.
    solved: None for a plan by rule.
    placed: None if no test run decided where inference runs.
    """

    config: RunConfig
    plan: RunPlan
    probe: Probe
    note: str
    solved: Solved | None = None
    placed: Placed | None = None
    planning_s: float = 0.0
