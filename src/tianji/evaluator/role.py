"""Evaluator: plays whole episodes with greedy actions, beside training and never in its way.

Takes      the latest policy (Board)
Gives      reports of the mean return, at the version that was evaluated
Waits for  its next turn, by the clock
Unblocked  by nobody; the idle heartbeat lets it look at the clock
Stops      between two ticks
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

from tianji.algorithms.interface import Acting
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.interface import BoardReader, Bytes
from tianji.config.run import EvaluateConfig
from tianji.envs.build import make_rows
from tianji.envs.interface import World
from tianji.types import Array, Clock

OnResult = Callable[[dict[str, Any]], None]


class Evaluator:
    """`tick` is one step of one environment, or nothing while no evaluation is due. Several tasks
    are played one after the other, with as many episodes each."""

    due_ns = 0
    """Nobody need wake it: it looks at the clock with every idle heartbeat."""

    def __init__(
        self,
        config: EvaluateConfig,
        seed: int,
        tasks: Mapping[str, World],
        acting: Acting,
        read_policy: Callable[[Bytes], None],
        policy: BoardReader,
        gauges: memoryview[int],
        on_result: OnResult,
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        self._config = config
        self._seed = seed
        self._tasks = tasks
        self._acting = acting
        self._read_policy = read_policy
        self._policy = policy
        self._gauges = gauges
        self._on_result = on_result
        self._now_ns = now_ns
        self._rows: dict[str, Array] = {}
        self._observations: list[str] = []
        self._to_play: list[str] = []
        """Tasks of this evaluation, the first one being played; none between two evaluations."""
        self._next_ns = 0
        self._version = -1
        self._returns: dict[str, list[float]] = {}
        self._return = 0.0
        self._num_steps = 0
        self._num_cut = 0

    def tick(self) -> bool:
        if not self._to_play and not self._begin():
            return False
        rows = self._rows
        actions = self._acting.greedy({name: rows[name][0] for name in self._observations})
        self._tasks[self._to_play[0]].step(actions, rows, 0)
        for name in self._observations:
            rows[name][0] = rows[name][1]
        if rows["valid"][0, 0]:
            self._return += float(rows["reward"][0, 0])
            self._num_steps += 1
        if rows["terminated"][0, 0] or rows["truncated"][0, 0]:
            self._end_episode()
        elif self._num_steps >= self._config.cut_after_steps:
            self._cut_episode()
        return True

    def _cut_episode(self) -> None:
        """Count an episode that does not end as it is, and begin the next one by hand."""
        self._num_cut += 1
        tasks_left = len(self._to_play)
        self._end_episode()
        if len(self._to_play) == tasks_left:
            world = self._tasks[self._to_play[0]]
            world.reset(self._seed + self._num_cut, self._rows)

    def _end_episode(self) -> None:
        played = self._returns[self._to_play[0]]
        played.append(self._return)
        self._return, self._num_steps = 0.0, 0
        if len(played) < self._config.episodes:
            return
        self._to_play.pop(0)
        if self._to_play:
            self._begin_task()
        else:
            self._finish()

    def _begin(self) -> bool:
        now_ns = self._now_ns()
        if now_ns < self._next_ns or self._policy.version() <= self._version:
            self._gauges[Gauge.ACTIVITY] = Activity.WAITING
            return False
        self._gauges[Gauge.ACTIVITY] = Activity.EVALUATING
        self._next_ns = now_ns + int(self._config.period_s * 1e9)
        self._version = self._policy.latest(self._read_policy)
        self._to_play = list(self._tasks)
        self._returns = {name: [] for name in self._tasks}
        self._return, self._num_steps, self._num_cut = 0.0, 0, 0
        self._begin_task()
        return True

    def _begin_task(self) -> None:
        world = self._tasks[self._to_play[0]]
        self._rows = make_rows(world, 1)
        self._observations = [n for n in self._rows if n == "obs" or n.startswith("obs.")]
        world.reset(self._seed, self._rows)  # the same episodes each time: comparable

    def _finish(self) -> None:
        returns = [value for played in self._returns.values() for value in played]
        result: dict[str, Any] = {
            "version": self._version,
            "episodes": len(returns),
            "cut_episodes": self._num_cut,
            "mean_return": statistics.fmean(returns),
            "std_return": statistics.pstdev(returns),
            "min_return": min(returns),
            "max_return": max(returns),
        }
        if len(self._returns) > 1:
            by_env = {name: statistics.fmean(played) for name, played in self._returns.items()}
            result["returns_by_env"] = by_env
        self._gauges[Gauge.ITEMS] += 1
        self._on_result(result)

    def close(self) -> None:
        for world in self._tasks.values():
            world.close()
