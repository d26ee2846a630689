"""A small environment of many agents, in the form of PettingZoo's parallel environments.

    tianji train --env pettingzoo:tianji.envs.exits

It needs no package: what has the methods of a parallel environment is one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from tianji.types import Array

STEP_COST = 0.05


class Exits:
    """Agents in a corridor, each of which is to find the exit at its left or at its right end.

    An agent observes its place and the side of its exit, one-hot, and moves left, stays or moves
    right. At the exit it gets 1 and leaves; every step costs 0.05. The last agent joins after
    `late` steps. What is left after `length` steps is truncated. Going straight to the exit gives
    0.87 on average; a random walk about 0.
    """

    metadata = {"name": "exits"}

    def __init__(
        self, num_agents: int = 4, num_cells: int = 7, length: int = 20, late: int = 3
    ) -> None:
        self.possible_agents = [f"agent_{i}" for i in range(num_agents)]
        self.agents: list[str] = []
        self.num_cells, self.length, self.late = num_cells, length, late
        self._observation_space = Box(0.0, 1.0, (num_cells + 2,), np.float32)
        self._action_space = Discrete(3)
        self._rng = np.random.default_rng()
        self._steps = 0
        self._cell: dict[str, int] = {}
        self._side: dict[str, int] = {}

    def observation_space(self, agent: str) -> Box:
        return self._observation_space

    def action_space(self, agent: str) -> Discrete:
        return self._action_space

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, dict[str, Any]]]:
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._steps = 0
        self.agents = self.possible_agents[: len(self.possible_agents) - bool(self.late)]
        for agent in self.possible_agents:
            self._cell[agent] = int(self._rng.integers(1, self.num_cells - 1))
            self._side[agent] = int(self._rng.integers(2))
        return {agent: self._observe(agent) for agent in self.agents}, {a: {} for a in self.agents}

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        self._steps += 1
        acted, is_last = list(self.agents), self._steps >= self.length
        rewards: dict[str, Any] = {}
        terminated: dict[str, Any] = {}
        for agent in acted:
            moved = self._cell[agent] + int(actions[agent]) - 1
            self._cell[agent] = min(max(moved, 0), self.num_cells - 1)
            terminated[agent] = self._cell[agent] == self._side[agent] * (self.num_cells - 1)
            rewards[agent] = float(terminated[agent]) - STEP_COST
        truncated = {agent: is_last and not terminated[agent] for agent in acted}
        self.agents = [a for a in acted if not (terminated[a] or truncated[a])]
        if self._steps == self.late and not is_last:
            joined = self.possible_agents[-1]
            self.agents.append(joined)
            rewards[joined], terminated[joined], truncated[joined] = 0.0, False, False
        observations = {agent: self._observe(agent) for agent in rewards}
        return observations, rewards, terminated, truncated, {agent: {} for agent in rewards}

    def _observe(self, agent: str) -> Array:
        seen: Array = np.zeros(self.num_cells + 2, np.float32)
        seen[self._cell[agent]] = seen[self.num_cells + self._side[agent]] = 1.0
        return seen

    def get_state(self) -> dict[str, Any]:
        return {
            "agents": list(self.agents),
            "steps": self._steps,
            "cell": dict(self._cell),
            "side": dict(self._side),
            "random": self._rng.bit_generator.state,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        self.agents, self._steps = list(state["agents"]), int(state["steps"])
        self._cell, self._side = dict(state["cell"]), dict(state["side"])
        self._rng.bit_generator.state = state["random"]

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def parallel_env(**kwargs: Any) -> Exits:
    """Make it, by the name that PettingZoo's modules give such a function."""
    return Exits(**kwargs)
