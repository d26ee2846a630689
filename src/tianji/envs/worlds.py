"""Small environments with known answers, for tests, examples and experiments.

    tianji train --env tianji.envs.worlds:Continuous --algorithm ppo

Every one offers its state (see `Stateful`), so that runs on them resume exactly.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

from tianji.types import Array

End = Literal["terminated", "truncated"]
Step = tuple[Any, float, bool, bool, dict[str, Any]]


class SmallWorld(gym.Env[Any, Any]):
    """An environment with episodes of a fixed length; subclasses define observation and reward."""

    remembers: ClassVar[tuple[str, ...]] = ()
    """Attributes that are state, in addition to the step count."""

    def __init__(self, length: int = 10, end: End = "truncated") -> None:
        self.length, self.end = length, end
        self.steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        self.begin(seeded=seed is not None)
        return self.observe(), self.inform()

    def step(self, action: Any) -> Step:
        self.steps += 1
        reward = self.act(action)
        over = self.steps >= self.length
        ends = over and self.end == "terminated", over and self.end == "truncated"
        return self.observe(), reward, *ends, self.inform()

    def begin(self, seeded: bool) -> None:
        """Prepare an episode."""

    def act(self, action: Any) -> float:
        """Change the state and return the reward."""
        raise NotImplementedError

    def observe(self) -> Any:
        raise NotImplementedError

    def inform(self) -> dict[str, Any]:
        """Return the info."""
        return {}

    def get_state(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("steps", "length", *self.remembers)}

    def set_state(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)


class Counting(SmallWorld):
    """Counts its steps, so that every lost, doubled or misaligned step is visible.

    It observes (steps since the last reset with a seed, steps in this episode, a number drawn from
    the seed, the last action). The reward is the first of these, after the step. With a `spread`,
    the length of each episode is drawn from length .. length + spread.
    """

    remembers = ("total", "tag", "action")

    def __init__(self, length: int = 10, end: End = "truncated", spread: int = 0) -> None:
        super().__init__(length, end)
        self.observation_space = Box(-1.0, np.inf, (4,), np.float32)
        self.action_space = Discrete(4)
        self.shortest, self.spread = length, spread
        self.total, self.tag, self.action = 0, 0, -1

    def begin(self, seeded: bool) -> None:
        if seeded:
            self.total, self.tag = 0, int(self.np_random.integers(2**20))
        self.length = self.shortest + int(self.np_random.integers(self.spread + 1))
        self.action = -1

    def act(self, action: Any) -> float:
        self.total += 1
        self.action = int(action)
        return float(self.total)

    def observe(self) -> Array:
        return np.array([self.total, self.steps, self.tag, self.action], np.float32)


class Chain(SmallWorld):
    """Gives a reward of 1 in every step and observes its place in the chain, one-hot."""

    def __init__(self, length: int = 5, end: End = "terminated") -> None:
        super().__init__(length, end)
        self.observation_space = Box(0.0, 1.0, (length + 1,), np.float32)
        self.action_space = Discrete(2)

    def act(self, action: Any) -> float:
        return 1.0

    def observe(self) -> Array:
        place = np.zeros(self.length + 1, np.float32)
        place[self.steps] = 1.0
        return place

    def values(self, gamma: float) -> Array:
        """Return the true value of each place; after a truncation the rewards would continue."""
        left = self.length - np.arange(self.length + 1)
        if self.end == "truncated":
            return np.full(self.length + 1, 1.0 / (1.0 - gamma))
        return np.asarray((1.0 - gamma**left) / (1.0 - gamma))


class Flaky(Counting):
    """Fails in step `at_step`, counted over all episodes: it raises an exception, sleeps for
    `seconds` (by default long enough to hang), or ends its process.

    With a `marker` (a path), only the environment that creates this file fails; all others, and
    its replacement, work.
    """

    def __init__(
        self,
        how: Literal["raise", "hang", "exit", "kill"] = "raise",
        at_step: int = 20,
        marker: str | None = None,
        seconds: float = 1e6,
        length: int = 10,
    ) -> None:
        super().__init__(length)
        self.how, self.at_step, self.marker, self.seconds = how, at_step, marker, seconds

    def act(self, action: Any) -> float:
        if self.total + 1 == self.at_step and self._is_chosen():
            self._fail()
        return super().act(action)

    def _is_chosen(self) -> bool:
        if self.marker is None:
            return True
        try:
            os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def _fail(self) -> None:
        if self.how == "raise":
            raise RuntimeError(f"this world fails in step {self.at_step}, as configured")
        if self.how == "hang":
            time.sleep(self.seconds)
        elif self.how == "exit":
            os._exit(3)
        else:
            os.kill(os.getpid(), signal.SIGKILL)


class Slow(Counting):
    """A Counting world in which every step takes `seconds` and a reset takes none."""

    def __init__(self, seconds: float = 0.01, length: int = 10) -> None:
        super().__init__(length)
        self.seconds = seconds

    def act(self, action: Any) -> float:
        time.sleep(self.seconds)
        return super().act(action)


class NaNRewards(Counting):
    """A Counting world whose rewards are NaN from step `at_step` on."""

    def __init__(self, at_step: int = 20, length: int = 10) -> None:
        super().__init__(length)
        self.at_step = at_step

    def act(self, action: Any) -> float:
        reward = super().act(action)
        return float("nan") if self.total >= self.at_step else reward


class Continuous(SmallWorld):
    """Rewards repeating the observed number with -(action - observation)^2; best return: 0."""

    remembers = ("target",)

    def __init__(self, size: int = 1, length: int = 10) -> None:
        super().__init__(length)
        self.observation_space = Box(-1.0, 1.0, (size,), np.float32)
        self.action_space = Box(-1.0, 1.0, (size,), np.float32)
        self.target = np.zeros(size, np.float32)

    def begin(self, seeded: bool) -> None:
        self.target = self.np_random.uniform(-1.0, 1.0, self.target.shape).astype(np.float32)

    def act(self, action: Any) -> float:
        reward = -float(np.square(action - self.target).sum())
        self.begin(seeded=False)
        return reward

    def observe(self) -> Array:
        return self.target


class MultiDiscreteWorld(SmallWorld):
    """Rewards repeating the observed digits with the share that is right; best return: `length`."""

    remembers = ("digits",)

    def __init__(self, choices: tuple[int, ...] = (3, 2), length: int = 10) -> None:
        super().__init__(length)
        self.choices = np.array(choices)
        self.observation_space = Box(0.0, 1.0, (int(self.choices.sum()),), np.float32)
        self.action_space = MultiDiscrete(self.choices)
        self.digits = np.zeros(len(choices), np.int64)

    def begin(self, seeded: bool) -> None:
        self.digits = self.np_random.integers(self.choices)

    def act(self, action: Any) -> float:
        reward = float(np.mean(np.asarray(action) == self.digits))
        self.begin(seeded=False)
        return reward

    def observe(self) -> Array:
        pairs = zip(self.choices, self.digits, strict=True)
        return np.concatenate([np.eye(n, dtype=np.float32)[digit] for n, digit in pairs])


class Pixels(SmallWorld):
    """Catch: a ball falls, and a paddle in the last row moves left, stays or moves right.

    The last step gives a reward of 1 for a catch and -1 for a miss. The image has `cells` x `cells`
    squares of `zoom` pixels.
    """

    remembers = ("ball", "paddle")

    def __init__(self, cells: int = 6, zoom: int = 6) -> None:
        super().__init__(length=cells - 1, end="terminated")
        self.cells, self.zoom = cells, zoom
        self.observation_space = Box(0, 255, (cells * zoom, cells * zoom, 1), np.uint8)
        self.action_space = Discrete(3)
        self.ball, self.paddle = 0, cells // 2

    def begin(self, seeded: bool) -> None:
        self.ball, self.paddle = int(self.np_random.integers(self.cells)), self.cells // 2

    def act(self, action: Any) -> float:
        self.paddle = min(max(self.paddle + int(action) - 1, 0), self.cells - 1)
        if self.steps < self.length:
            return 0.0
        return 1.0 if self.paddle == self.ball else -1.0

    def observe(self) -> Array:
        board = np.zeros((self.cells, self.cells, 1), np.uint8)
        board[self.steps, self.ball] = 255
        board[-1, self.paddle] = 255
        return board.repeat(self.zoom, axis=0).repeat(self.zoom, axis=1)


class DictWorld(Pixels):
    """Catch, observed as an image and as a vector (ball, paddle, row) with the same content."""

    def __init__(self, cells: int = 6, zoom: int = 6) -> None:
        super().__init__(cells, zoom)
        self.observation_space = Dict(
            {"image": self.observation_space, "vector": Box(0.0, 1.0, (3,), np.float32)}
        )

    def observe(self) -> Any:
        vector = np.array([self.ball, self.paddle, self.steps], np.float32) / self.cells
        return {"image": super().observe(), "vector": vector}
