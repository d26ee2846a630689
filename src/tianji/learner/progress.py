"""Progress: how far a run has come, and whether it has reached a target or a limit. No I/O."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

from tianji.config.run import RunConfig
from tianji.records import ProgressRecord, StoppedBecause
from tianji.types import Episode

WINDOW = 100


class Progress:
    """Counts what enters the store, in an order that does not depend on when it arrived."""

    def __init__(
        self,
        config: RunConfig,
        other_steps: Callable[[], int] = lambda: 0,
        on_episodes: Callable[[list[Episode]], None] = lambda episodes: None,
    ) -> None:
        """other_steps: returns the environment steps of the run that others count. on_episodes: is
        given all finished episodes."""
        self._config = config
        self._other_steps = other_steps
        self._on_episodes = on_episodes
        self._last: dict[str, deque[float]] = {n: deque(maxlen=WINDOW) for n in config.tasks}
        """Returns of the last episodes of each environment."""
        self.env_steps = 0
        self.episodes = 0
        self.started_ns = 0
        """Time of the first environment step in this session."""
        self.wall_before_s = 0.0
        """Training time before a resume."""
        self.target_ns = 0
        self.best_mean_return = float("-inf")

    def add(self, episodes: list[Episode], env_steps: int) -> None:
        self.env_steps += env_steps
        self._on_episodes(episodes)
        for episode in episodes:
            self.episodes += 1
            tasks = self._config.tasks
            self._last[tasks[episode.actor % len(tasks)]].append(episode.episode_return)
            if not self.is_rated:
                continue
            mean = self.mean_return
            self.best_mean_return = max(self.best_mean_return, mean)
            target = self._config.target_return
            if target is not None and mean >= target and not self.target_ns:
                self.target_ns = episode.finished_ns

    @property
    def mean_return(self) -> float:
        """Mean return of the last 100 finished episodes, or of fewer while there are fewer. Where
        actors have different environments, it is the mean of the environments' means, so that fast
        environments and short episodes count no more than others."""
        means = [_mean(returns) for returns in self._last.values()]
        return sum(means) / len(means)

    def returns_by_env(self) -> dict[str, float | None]:
        """Return the mean return of each environment, where there are several."""
        if len(self._last) == 1:
            return {}
        return {name: _mean(returns) for name, returns in self._last.items()}

    @property
    def is_rated(self) -> bool:
        """True when the mean is of enough episodes to compare it with others."""
        return all(len(returns) == WINDOW for returns in self._last.values())

    @property
    def fraction(self) -> float:
        """Share of max_env_steps done; schedules run along it."""
        return self.fraction_at(self._run_steps)

    def fraction_at(self, env_steps: int) -> float:
        """Return the share of max_env_steps that so many steps are."""
        return min(1.0, env_steps / self._config.max_env_steps)

    @property
    def _run_steps(self) -> int:
        return self.env_steps + self._other_steps()

    def wall_s(self, now_ns: int) -> float:
        if not self.started_ns:
            return self.wall_before_s
        return self.wall_before_s + (now_ns - self.started_ns) / 1e9

    def time_to_target_s(self) -> float | None:
        return self.wall_s(self.target_ns) if self.target_ns else None

    def stop_reason(self, now_ns: int) -> StoppedBecause | None:
        if self.target_ns:
            return "target_reached"
        if self._run_steps >= self._config.max_env_steps:
            return "max_env_steps"
        limit = self._config.max_wall_s
        if limit is not None and self.wall_s(now_ns) >= limit:
            return "max_wall"
        return None

    def record(self, now_ns: int) -> ProgressRecord:
        """Return how far the run has come, for its reports."""
        return ProgressRecord(
            wall_s=self.wall_s(now_ns),
            env_steps=self.env_steps,
            episodes=self.episodes,
            mean_return_100=self.mean_return,
            returns_by_env=self.returns_by_env(),
            time_to_target_s=self.time_to_target_s(),
            best_mean_return_100=self.best_mean_return,
        )

    def state(self, now_ns: int) -> dict[str, Any]:
        return {
            "last_returns": [list(returns) for returns in self._last.values()],
            "env_steps": self.env_steps,
            "episodes": self.episodes,
            "wall_s": self.wall_s(now_ns),
            "best_mean_return": self.best_mean_return if self.is_rated else None,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        last_returns = state["last_returns"]
        if not last_returns or not isinstance(last_returns[0], list):
            last_returns = [last_returns]  # saved when there was one task only
        for returns, saved in zip(self._last.values(), last_returns, strict=True):
            returns.extend(saved)
        self.env_steps = state["env_steps"]
        self.episodes = state["episodes"]
        self.wall_before_s = state["wall_s"]
        if state["best_mean_return"] is not None:
            self.best_mean_return = state["best_mean_return"]


def _mean(returns: Collection[float]) -> float:
    return sum(returns) / len(returns) if returns else math.nan
