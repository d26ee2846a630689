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
from collections.abc import Callable, Iterator, Mapping

from tianji.algorithms.interface import Acting
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.interface import BoardReader, Bytes
from tianji.config.run import EvaluateConfig
from tianji.envs.interface import World
from tianji.errors import EnvironmentFailed
from tianji.evaluator.play import Played, Player, combine, greedy, mean_returns
from tianji.records import Evaluation
from tianji.types import Clock

OnResult = Callable[[Evaluation], None]
OnFailure = Callable[[str], None]
"""Takes the reason why there is no result, in words."""
_DONE = object()


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
        on_failure: OnFailure,
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
        self._on_failure = on_failure
        self._has_failed = False
        self._now_ns = now_ns
        self._evaluation: Iterator[None] | None = None
        """Plays all tasks, one step at a time; None between two evaluations."""
        self._next_ns = 0
        self._version = -1

    def tick(self) -> bool:
        if self._evaluation is None and not self._begin():
            return False
        assert self._evaluation is not None
        if next(self._evaluation, _DONE) is _DONE:
            self._evaluation = None
        return True

    def _begin(self) -> bool:
        now_ns = self._now_ns()
        if now_ns < self._next_ns or self._policy.version() <= self._version:
            self._gauges[Gauge.ACTIVITY] = Activity.WAITING
            return False
        self._gauges[Gauge.ACTIVITY] = Activity.EVALUATING
        self._next_ns = now_ns + int(self._config.period_s * 1e9)
        self._version = self._policy.latest(self._read_policy)
        self._evaluation = self._play_or_skip()
        return True

    def _play_or_skip(self) -> Iterator[None]:
        """Play, and report it once if that is not possible: training need not end for it."""
        try:
            yield from self._play()
        except EnvironmentFailed as error:
            if not self._has_failed:
                self._on_failure(f"There is no evaluation: {error}")
            self._has_failed = True

    def _play(self) -> Iterator[None]:
        """Play the same episodes in every evaluation, so that they can be compared."""
        played: dict[str, Played] = {}
        episodes, cut_after = self._config.episodes, self._config.cut_after_steps
        for name, world in self._tasks.items():
            if played:
                yield  # the last step of the task before was one tick
            player = Player(greedy(self._acting), world, episodes, self._seed, cut_after)
            while player.step():
                yield
            played[name] = player.played()
        self._report(played)

    def _report(self, played: Mapping[str, Played]) -> None:
        returns, _, num_cut = combine(played.values())
        result: Evaluation = {
            "version": self._version,
            "episodes": len(returns),
            "cut_episodes": num_cut,
            "mean_return": statistics.fmean(returns),
            "std_return": statistics.pstdev(returns),
            "min_return": min(returns),
            "max_return": max(returns),
        }
        if means := mean_returns(played):
            result["returns_by_env"] = means
        self._gauges[Gauge.ITEMS] += 1
        self._on_result(result)

    def close(self) -> None:
        for world in self._tasks.values():
            world.close()
