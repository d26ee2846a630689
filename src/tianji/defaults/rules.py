"""The rules for defaults: from what an environment is like to an algorithm and its numbers.

    suggestion = suggest(facts)            # an algorithm and its numbers
    suggestion = suggest(facts, "dqn")     # numbers for the algorithm that the person named

One set of rules for all environments: no rule reads a name. Where no rule says otherwise, the
defaults of the algorithm count (algorithms/NAME/config.py). The evidence for every number is in
docs/decisions/0033-defaults-by-rule.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tianji.config.run import RunConfig
from tianji.config.schema import load_algorithm_config
from tianji.config.settings import ALGORITHM_NAME, list_settings
from tianji.defaults.facts import Facts
from tianji.wording import counted, to_seconds, to_value

ALGORITHMS = ("ppo", "sac")
"""What choose_algorithm() may choose, the usual one first."""
SLOW_STEP_S = 0.01
"""From here on a step takes longer than the update of SAC that follows it."""
NUM_ENVS: int = RunConfig.model_fields["num_envs"].default


@dataclass(frozen=True, slots=True)
class Choice:
    """Settings by path, and why they have these values, in words.

    >>> Choice({"num_envs": 9}, "num_envs is 9: whole environments of 3 agents.")
    """

    values: Mapping[str, Any]
    because: str
    is_needed: bool = False
    """The environment does not work otherwise, so that no style changes it."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The algorithm, and every choice that differs from its defaults."""

    algorithm: str
    choices: tuple[Choice, ...]

    @property
    def values(self) -> dict[str, Any]:
        """Return all settings by path."""
        found: dict[str, Any] = {ALGORITHM_NAME: self.algorithm}
        for choice in self.choices:
            found |= choice.values
        return found

    @property
    def needed(self) -> dict[str, Any]:
        """Return the settings by path without which the environment does not work."""
        needed = (choice.values for choice in self.choices if choice.is_needed)
        return {path: value for values in needed for path, value in values.items()}


def suggest(facts: Facts, algorithm: str | None = None) -> Suggestion:
    """Apply every rule. algorithm: the one that the person named; None: a rule chooses it."""
    found = [] if algorithm else [choose_algorithm(facts)]
    name = algorithm or str(found[0].values[ALGORITHM_NAME])
    known = {setting.path for setting in list_settings(load_algorithm_config(name))}
    for rule in RULES:
        choice = rule(facts)
        if choice is not None and choice.values.keys() <= known:
            found.append(choice)
    return Suggestion(name, tuple(found))


def choose_algorithm(facts: Facts) -> Choice:
    """SAC learns more from each step, PPO takes far less time for it."""
    step_s = facts.step_s
    suits_sac = facts.actions == "bounded" and not facts.sees_images and facts.num_agents == 1
    if step_s is not None and step_s >= SLOW_STEP_S and suits_sac:
        return Choice(
            {ALGORITHM_NAME: "sac"},
            f"Algorithm sac: actions are bounded numbers, and a step takes {_time(step_s)}, so "
            "learning much from each step is worth more than quick updates.",
        )
    if step_s is None:
        why = "it learns with any actions and observations."
    elif step_s >= SLOW_STEP_S:
        why = (
            f"a step takes {_time(step_s)}, but sac, which learns more from each step, "
            f"{_no_sac(facts)}."
        )
    else:
        why = (
            f"a step takes {_time(step_s)}, and it learns most in a given time from steps that "
            "cost little."
        )
    return Choice({ALGORITHM_NAME: "ppo"}, f"Algorithm ppo: {why}")


def _no_sac(facts: Facts) -> str:
    """Return why SAC is not chosen for an environment with long steps."""
    if facts.actions != "bounded":
        return "trains only with bounded numbers as actions"
    return "is chosen only where it was compared: one agent, no images"


def fit_agents(facts: Facts) -> Choice | None:
    """Agents count as environments, and come in whole environments."""
    if facts.num_agents == 1:
        return None
    copies = math.ceil(NUM_ENVS / facts.num_agents)
    num_envs, whole = copies * facts.num_agents, counted(copies, "whole environment")
    return Choice(
        {"num_envs": num_envs},
        f"num_envs {num_envs}: {whole} of {facts.num_agents} agents.",
        is_needed=True,
    )


def explore_further(facts: Facts) -> Choice | None:
    """Noise that is independent in every step cancels out; where rewards say nothing, that finds
    nothing either."""
    if not facts.are_rewards_silent or facts.actions == "choices":
        return None
    assert facts.rewards is not None
    return Choice(
        {"algorithm.noise_color": 1.0},
        f"noise_color 1: in {facts.rewards.num_steps:,} random steps the rewards said nothing "
        "about the state, so actions keep their direction for longer, to get further.",
    )


Rule = Callable[[Facts], Choice | None]
RULES: tuple[Rule, ...] = (fit_agents, explore_further)
"""A rule counts for the algorithms that have all its settings."""


def _time(seconds: float) -> str:
    return f"{to_value(seconds * 1e3, 2)} ms" if seconds < 1.0 else to_seconds(seconds)
