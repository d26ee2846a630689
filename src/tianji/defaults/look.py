"""Tries out an environment for a fraction of a second: what the rules for defaults need to know."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces as gym_spaces

from tianji.config.schema import ENV_KWARGS
from tianji.config.values import Values
from tianji.defaults.facts import Actions, Facts
from tianji.display.stream import tell_progress, tell_while_slow
from tianji.envs.build import EnvSources, Probe, probe_all
from tianji.envs.interface import Spaces
from tianji.envs.masks import AUTO_MASK, advice_on_illegal
from tianji.envs.spaces import observation_leaves
from tianji.models.sizes import is_image


def look(values: Values, env: EnvSources | None = None) -> Facts:
    """Return the facts of the environment that these settings name; UsageError if it is unusable.

    env: what makes the environment, where its name alone does not.
    """
    named: EnvSources = tuple(values.get("envs", ())) or str(values.get("env"))
    with (
        tell_progress(values.get("observe.display", "auto")) as tell,
        tell_while_slow(tell, f"Trying out {named}"),
    ):
        probe = probe_all(
            env or named,
            values.get(ENV_KWARGS, {}),
            timed=True,
            action_mask=str(values.get("action_mask", AUTO_MASK)),
            looks_at_rewards=True,
        )
    return facts_of(probe)


def facts_of(probe: Probe) -> Facts:
    """Return what a probe has found."""
    return Facts(
        actions=_kind_of_actions(probe.spaces),
        sees_images=any(is_image(leaf) for leaf in observation_leaves(probe.spaces.seen)),
        num_agents=probe.num_agents,
        step_s=probe.step_s,
        rewards=probe.rewards,
        step_failure=probe.step_failure,
        step_advice=advice_on_illegal(probe.spaces, probe.step_failure),
    )


def _kind_of_actions(spaces: Spaces) -> Actions:
    action = spaces.action
    if not isinstance(action, gym_spaces.Box):
        return "choices"
    is_bounded = np.isfinite(action.low).all() and np.isfinite(action.high).all()
    return "bounded" if is_bounded else "unbounded"
