"""Atari games by ALE's own vector environment, which steps them on threads in C++.

The emulator gives single frames, and each is stored once (see `Frames`). Rewards are the game's own
points: learners clip them. A lost life may count as an end for the learner (`life_loss`), but an
episode is always a whole game. EnvPool's games (pool.py) use the same world.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

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


class AtariWorld(NextStepWorld):
    """Games that step together; stores one frame of each step."""

    steps_alone = True

    def __init__(self, env: VectorEnv[Any, Any, Any], num_frames: int, life_loss: bool) -> None:
        """env: gives stacks of one frame. life_loss: mark the steps that lose a life."""
        _, *shape = env.single_observation_space.shape or ()
        super().__init__(env, Frames(num_frames, tuple(shape)))
        self._age = np.zeros(env.num_envs, np.uint8)
        self._lives: Array | None = None
        if life_loss:
            self._lives = np.zeros(env.num_envs, np.int32)
            self.more_fields = (Field(LIFE_LOST, "bool"),)

    def reset(self, seed: int, unroll: Unroll) -> None:
        super().reset(seed, unroll)
        self._age[:] = 0
        unroll[AGE][0] = 0
        if self._lives is not None:
            self._lives[:] = 0

    def recv(self, unroll: Unroll, t: int) -> None:
        was_reset = self._ended
        np.logical_not(was_reset, unroll["valid"][t])
        _, terminated, truncated, infos = self._store(unroll, t)
        self._age += self._age < OLDEST
        self._age[was_reset] = 0
        unroll[AGE][t + 1] = self._age
        if self._lives is not None:
            unroll[LIFE_LOST][t] = (infos["lives"] < self._lives) & ~was_reset
            self._lives = infos["lives"]
        np.logical_or(terminated, truncated, self._ended)


def make_atari(game: Mapping[str, Any], num_envs: int, num_threads: int) -> AtariWorld:
    """Make the games of one actor, from arguments of ALE's vector environment."""
    from ale_py.vector_env import AtariVectorEnv  # an optional package

    given = dict(game)
    for name, advice in ELSEWHERE.items():
        if name in given:
            raise UsageError(f"env_kwargs has '{name}', which is a setting of the run: {advice}.")
    num_frames, life_loss = take_frame_arguments(given)
    env = AtariVectorEnv(
        num_envs=num_envs, num_threads=num_threads, stack_num=1, reward_clipping=False, **given
    )
    return AtariWorld(env, num_frames, life_loss)


def take_frame_arguments(given: dict[str, Any]) -> tuple[int, bool]:
    """Remove from the arguments of a game what the world does, and return it: the frames of a
    stack, and whether lost lives are marked."""
    num_frames, life_loss = given.pop("stack_num", NUM_FRAMES), given.pop("episodic_life", False)
    if not isinstance(num_frames, int) or num_frames < 1:
        raise UsageError(f"stack_num is {num_frames!r}; it must be a number of frames, at least 1.")
    return num_frames, life_loss
