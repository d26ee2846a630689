"""Train a Stable-Baselines3 model, count its episodes ourselves, print one JSON line."""

from __future__ import annotations

import json
import time
from importlib import metadata
from typing import Any

from last_hundred import LastHundred
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback


class _Watch(BaseCallback):
    """Reads the episodes that SB3's own Monitor puts into `infos`; ends the run when told to."""

    def __init__(self, counter: LastHundred, stop_when_reached: bool, max_s: float) -> None:
        super().__init__()
        self._counter = counter
        self._stop_when_reached = stop_when_reached
        self._max_s = max_s
        self.started = time.perf_counter()

    def _on_step(self) -> bool:
        elapsed = time.perf_counter() - self.started
        for info in self.locals["infos"]:
            if "episode" in info:
                self._counter.add(info["episode"]["r"], elapsed, self.num_timesteps)
        if self._stop_when_reached and self._counter.all_reached:
            return False
        return elapsed < self._max_s


def learn(
    model: BaseAlgorithm,
    total_steps: int,
    targets: list[float],
    *,
    stop_when_reached: bool,
    max_s: float,
    process_started: float,
    settings: dict[str, Any],
) -> None:
    counter = LastHundred(targets)
    watch = _Watch(counter, stop_when_reached, max_s)
    watch.started = time.perf_counter()
    start_up_s = watch.started - process_started
    model.learn(total_timesteps=total_steps, callback=watch)
    wall_s = time.perf_counter() - watch.started
    print(
        json.dumps(
            {
                "start_up_s": start_up_s,
                "wall_s": wall_s,
                "env_steps": model.num_timesteps,
                "steps_per_s": model.num_timesteps / wall_s,
                **counter.figures(),
                "settings": settings,
                "versions": {
                    name: metadata.version(name)
                    for name in ("stable-baselines3", "torch", "gymnasium", "numpy")
                },
            }
        )
    )
