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
from collections.abc import Callable

from tianji.algorithms.interface import Acting
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.interface import BoardReader, Bytes
from tianji.config.run import EvaluateConfig
from tianji.envs.build import make_rows
from tianji.envs.interface import World
from tianji.types import Clock

OnResult = Callable[[dict[str, float]], None]


class Evaluator:
    """`tick` is one step of one environment, or nothing while no evaluation is due."""

    def __init__(
        self,
        config: EvaluateConfig,
        seed: int,
        world: World,
        acting: Acting,
        read_policy: Callable[[Bytes], None],
        policy: BoardReader,
        gauges: memoryview[int],
        on_result: OnResult,
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        self._config = config
        self._seed = seed
        self._world = world
        self._acting = acting
        self._read_policy = read_policy
        self._policy = policy
        self._gauges = gauges
        self._on_result = on_result
        self._now_ns = now_ns
        self._rows = make_rows(world, 1)
        self._observations = [n for n in self._rows if n == "obs" or n.startswith("obs.")]
        self._is_playing = False
        self._due_ns = 0
        self._version = -1
        self._returns: list[float] = []
        self._return = 0.0

    def tick(self) -> bool:
        if not self._is_playing and not self._begin():
            return False
        rows = self._rows
        actions = self._acting.greedy({name: rows[name][0] for name in self._observations})
        self._world.step(actions, rows, 0)
        if rows["valid"][0, 0]:
            self._return += float(rows["reward"][0, 0])
        if rows["terminated"][0, 0] or rows["truncated"][0, 0]:
            self._returns.append(self._return)
            self._return = 0.0
            if len(self._returns) == self._config.episodes:
                self._finish()
        for name in self._observations:
            rows[name][0] = rows[name][1]
        return True

    def _begin(self) -> bool:
        now_ns = self._now_ns()
        if now_ns < self._due_ns or self._policy.version() <= self._version:
            self._gauges[Gauge.ACTIVITY] = Activity.WAITING
            return False
        self._gauges[Gauge.ACTIVITY] = Activity.EVALUATING
        self._due_ns = now_ns + int(self._config.period_s * 1e9)
        self._version = self._policy.latest(self._read_policy)
        self._world.reset(self._seed, self._rows)  # the same episodes each time: comparable
        self._returns, self._return = [], 0.0
        self._is_playing = True
        return True

    def _finish(self) -> None:
        self._is_playing = False
        self._on_result(
            {
                "version": self._version,
                "episodes": len(self._returns),
                "mean_return": statistics.fmean(self._returns),
                "std_return": statistics.pstdev(self._returns),
                "min_return": min(self._returns),
                "max_return": max(self._returns),
            }
        )

    def close(self) -> None:
        self._world.close()
