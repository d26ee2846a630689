"""An environment and an algorithm whose speeds can be changed while a run goes on.

Both wait instead of computing, so that what is measured is how the run answers, not how many cores
the machine has left. The speeds are two numbers in a file that every process maps.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv

from tianji.algorithms.interface import Minibatch, Update
from tianji.algorithms.ppo.spec import ALGORITHM as PPO
from tianji.envs.interface import Spaces
from tianji.types import Batch

if TYPE_CHECKING:
    import torch

    from tianji.config.run import RunConfig

SPEEDS_VARIABLE = "DISTURBED_SPEEDS"
STEP_S = 0.002
UPDATE_S = 0.005
_FORMAT = "<2d"


class Speeds:
    """How many times slower than usual the environments and the learner are."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), struct.calcsize(_FORMAT))

    @staticmethod
    def create(path: Path) -> Speeds:
        path.write_bytes(struct.pack(_FORMAT, 1.0, 1.0))
        os.environ[SPEEDS_VARIABLE] = str(path)  # the run's processes inherit it
        return Speeds(path)

    @staticmethod
    def of_this_run() -> Speeds:
        return Speeds(Path(os.environ[SPEEDS_VARIABLE]))

    def set(self, environments: float = 1.0, learner: float = 1.0) -> None:
        struct.pack_into(_FORMAT, self._memory, 0, environments, learner)

    @property
    def environments(self) -> float:
        return float(struct.unpack_from(_FORMAT, self._memory)[0])

    @property
    def learner(self) -> float:
        return float(struct.unpack_from(_FORMAT, self._memory)[1])


class SlowedCartPole(CartPoleVectorEnv):
    """A step of all environments together takes STEP_S, times the factor."""

    speeds: Speeds

    def step(self, action: Any) -> Any:
        time.sleep(STEP_S * self.speeds.environments)
        return super().step(action)


def make(num_envs: int) -> SlowedCartPole:
    made = SlowedCartPole(num_envs=num_envs, max_episode_steps=500)
    made.speeds = Speeds.of_this_run()
    return made


@dataclass(frozen=True)
class SlowedUpdate:
    """An optimiser step takes UPDATE_S longer than it needs, all of it times the factor."""

    inner: Update
    speeds: Speeds

    def minibatches(self, batch: Batch, progress: float) -> Iterator[Minibatch]:
        before_s = time.monotonic()

        def step() -> None:
            minibatch.step()
            factor, worked_s = self.speeds.learner, time.monotonic() - before_s
            time.sleep(UPDATE_S * factor + worked_s * (factor - 1))

        for minibatch in self.inner.minibatches(batch, progress):
            yield Minibatch(minibatch.gradient, step)
            before_s = time.monotonic()

    def metrics(self) -> Mapping[str, float]:
        return self.inner.metrics()

    def minibatch_steps(self, batch: Batch) -> int:
        return self.inner.minibatch_steps(batch)

    def state(self) -> dict[str, torch.Tensor]:
        return self.inner.state()

    def load_state(self, state: Mapping[str, torch.Tensor]) -> None:
        self.inner.load_state(state)


def build_update(model: torch.nn.Module, spaces: Spaces, config: RunConfig) -> SlowedUpdate:
    return SlowedUpdate(PPO.build_update(model, spaces, config), Speeds.of_this_run())


ALGORITHM = replace(PPO, name="benchmarks.disturbances.slowed:ALGORITHM", build_update=build_update)
