"""What the rules for defaults know of an environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from tianji.envs.rewards import RewardLook

Actions: TypeAlias = Literal["choices", "bounded", "unbounded"]
"""Choices among options, or real numbers: all of them have bounds, or not all."""


@dataclass(frozen=True, slots=True)
class Facts:
    """An environment, as its spaces and a fraction of a second of random actions show it.

    >>> Facts(actions="bounded", sees_images=False, num_agents=1, step_s=2e-5,
    ...       rewards=RewardLook(num_steps=2000, depend_on_state=False))
    """

    actions: Actions
    sees_images: bool
    """Some part of an observation is an image."""
    num_agents: int
    """Agents that share the policy; 1 for an environment without agents."""
    step_s: float | None
    """Mean seconds of one step of one environment or agent; None if unknown."""
    rewards: RewardLook | None
    """What random actions have shown of the rewards; None if unknown."""
    step_failure: str = ""
    """What a step of the trial raised; "" if none did."""
    step_advice: str = ""
    """What to do about that, with a blank before it; "" if unknown."""

    @property
    def are_rewards_silent(self) -> bool:
        """Return whether rewards were seen to say nothing about the state."""
        return self.rewards is not None and self.rewards.is_silent
