"""Atari games by ALE's own vector environment, which steps them on threads in C++.

The emulator gives single frames, and each is stored once (see `Frames`). With `whole_stacks` it
gives stacks, which are stored as they are: the same observations in more bytes. Rewards are the
game's own points: learners clip them. A lost life may count as an end for the learner
(`life_loss`), but an episode is always a whole game. EnvPool's games (pool.py) use the same worlds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import VectorEnv

from tianji.envs.find import WHOLE_STACKS
from tianji.envs.spaces import Frames
from tianji.envs.vector import NextStepWorld
from tianji.errors import UsageError
from tianji.types import AGE, LIFE_LOST, Array, Field, Unroll

OLDEST = 255
"""Ages count up to here."""
NUM_FRAMES = 4
ELSEWHERE = {
    "reward_clipping": "rewards are the game's own points here, use normalize.clip_rewards",
    "num_threads": "use emulator_threads",
    "life_loss_info": "use episodic_life, which marks lost lives",
}
"""Parameters of ALE's vector environment that are decided elsewhere, and where."""


class FrameArguments(NamedTuple):
    """The arguments of a game that its world needs: FrameArguments(num_frames=4)"""

    num_frames: int = NUM_FRAMES
    """The frames of a stack."""
    life_loss: bool = False
    """Mark the steps that lose a life."""
    is_whole: bool = False
    """Store every stack with all its frames."""

    @property
    def num_given(self) -> int:
        """The frames of a stack that the emulator has to give."""
        return self.num_frames if self.is_whole else 1


def games_world(env: VectorEnv[Any, Any, Any], asked: FrameArguments) -> StackWorld:
    """Return the world of games that give stacks of asked.num_given frames."""
    return (StackWorld if asked.is_whole else AtariWorld)(env, asked)


class StackWorld(NextStepWorld):
    """Games that step together; stores the whole stack of each step."""

    steps_alone = True

    def __init__(self, env: VectorEnv[Any, Any, Any], asked: FrameArguments) -> None:
        _, *shape = env.single_observation_space.shape or ()
        super().__init__(env, Frames(asked.num_frames, tuple(shape), asked.is_whole))
        self._lives: Array | None = None
        if asked.life_loss:
            self._lives = np.zeros(env.num_envs, np.int32)
            self.more_fields = (Field(LIFE_LOST, "bool"),)

    def reset(self, seed: int, unroll: Unroll) -> None:
        super().reset(seed, unroll)
        if self._lives is not None:
            self._lives[:] = 0

    def recv(self, unroll: Unroll, t: int) -> None:
        was_reset = self._ended
        np.logical_not(was_reset, unroll["valid"][t])
        _, terminated, truncated, infos = self._store(unroll, t)
        if self._lives is not None:
            unroll[LIFE_LOST][t] = (infos["lives"] < self._lives) & ~was_reset
            self._lives = infos["lives"]
        np.logical_or(terminated, truncated, self._ended)


class AtariWorld(StackWorld):
    """Games that step together; stores one frame of each step, and its age."""

    def __init__(self, env: VectorEnv[Any, Any, Any], asked: FrameArguments) -> None:
        super().__init__(env, asked)
        self._age = np.zeros(env.num_envs, np.uint8)

    def reset(self, seed: int, unroll: Unroll) -> None:
        super().reset(seed, unroll)
        self._age[:] = 0
        unroll[AGE][0] = 0

    def recv(self, unroll: Unroll, t: int) -> None:
        self._age += self._age < OLDEST
        self._age[self._ended] = 0  # this step is their reset
        super().recv(unroll, t)
        unroll[AGE][t + 1] = self._age


def make_atari(game: Mapping[str, Any], num_envs: int, num_threads: int) -> StackWorld:
    """Make the games of one actor, from arguments of ALE's vector environment."""
    from ale_py.vector_env import AtariVectorEnv  # an optional package

    given = dict(game)
    for name, advice in ELSEWHERE.items():
        if name in given:
            raise UsageError(f"env_kwargs has '{name}', which is a setting of the run: {advice}.")
    asked = take_frame_arguments(given)
    env = AtariVectorEnv(
        num_envs=num_envs,
        num_threads=num_threads,
        stack_num=asked.num_given,
        reward_clipping=False,
        **given,
    )
    return games_world(env, asked)


def take_frame_arguments(given: dict[str, Any]) -> FrameArguments:
    """Remove from the arguments of a game what the world does, and return it."""
    num_frames, life_loss = given.pop("stack_num", NUM_FRAMES), given.pop("episodic_life", False)
    if not isinstance(num_frames, int) or num_frames < 1:
        raise UsageError(f"stack_num is {num_frames!r}; it must be a number of frames, at least 1.")
    return FrameArguments(num_frames, life_loss, given.pop(WHOLE_STACKS, False))
