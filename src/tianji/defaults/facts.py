"""What the rules for defaults know of an environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from gymnasium import spaces as gym_spaces

from tianji.envs.build import Probe
from tianji.envs.interface import Spaces
from tianji.envs.rewards import RewardLook
from tianji.envs.spaces import observation_leaves
from tianji.models.sizes import is_image


@dataclass(frozen=True, slots=True)
class Facts:
    """An environment, as its spaces and a fraction of a second of random actions show it.

    >>> Facts(actions="bounded", sees_images=False, num_agents=1, step_s=2e-5,
    ...       rewards=RewardLook(num_steps=2000, depend_on_state=False))
    """

    actions: Literal["choices", "bounded", "unbounded"]
    """Choices among options, or real numbers: all of them have bounds, or not all."""
    sees_images: bool
    """Some part of an observation is an image."""
    num_agents: int
    """Agents that share the policy; 1 for an environment without agents."""
    step_s: float | None
    """Mean seconds of one step of one environment or agent; None if unknown."""
    rewards: RewardLook | None
    """What random actions have shown of the rewards; None if unknown."""

    @property
    def are_rewards_silent(self) -> bool:
        """Return whether rewards were seen to say nothing about the state."""
        return self.rewards is not None and self.rewards.is_silent


def facts_of(probe: Probe) -> Facts:
    """Return what a probe has found."""
    return Facts(
        actions=_kind_of_actions(probe.spaces),
        sees_images=any(is_image(leaf) for leaf in observation_leaves(probe.spaces.seen)),
        num_agents=probe.num_agents,
        step_s=probe.step_s,
        rewards=probe.rewards,
    )


def _kind_of_actions(spaces: Spaces) -> Literal["choices", "bounded", "unbounded"]:
    action = spaces.action
    if not isinstance(action, gym_spaces.Box):
        return "choices"
    is_bounded = np.isfinite(action.low).all() and np.isfinite(action.high).all()
    return "bounded" if is_bounded else "unbounded"
