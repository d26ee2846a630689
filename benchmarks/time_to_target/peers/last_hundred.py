"""The one clock and the one definition of "reached" for all peers.

A target is reached at the moment an episode ends that brings the mean return of the last 100
finished training episodes to the target; 100 must have finished.
"""

from __future__ import annotations

from collections import deque
from typing import Any

WINDOW = 100


class LastHundred:
    """Feed it every finished episode in order; it remembers when each target was reached."""

    def __init__(self, targets: list[float]) -> None:
        self._returns: deque[float] = deque(maxlen=WINDOW)
        self._targets = targets
        self._reached: dict[float, dict[str, float]] = {}
        self.best_mean = 0.0
        self.num_episodes = 0

    def add(self, episode_return: float, at_s: float, env_steps: int) -> None:
        self._returns.append(episode_return)
        self.num_episodes += 1
        if len(self._returns) < WINDOW:
            return
        mean = sum(self._returns) / WINDOW
        self.best_mean = max(self.best_mean, mean)
        for target in self._targets:
            if mean >= target and target not in self._reached:
                self._reached[target] = {"s": at_s, "env_steps": env_steps}

    @property
    def all_reached(self) -> bool:
        return len(self._reached) == len(self._targets)

    def figures(self) -> dict[str, Any]:
        """Per target the seconds and steps, None where it was not reached."""
        found: dict[str, Any] = {"best_mean_100": self.best_mean, "episodes": self.num_episodes}
        for target in self._targets:
            reached = self._reached.get(target)
            found[f"time_to_{target:g}_s"] = reached["s"] if reached else None
            found[f"steps_to_{target:g}"] = reached["env_steps"] if reached else None
        return found
