"""Makes the World of an actor with the maker of its environments."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import gymnasium as gym
from gymnasium.vector import VectorEnv

from tianji.envs.atari import FrameArguments, games_world, make_atari
from tianji.envs.find import PETTINGZOO, Maker, usage_errors
from tianji.envs.interface import NO_MASK, World
from tianji.envs.masks import MaskedEnv, MaskedVector
from tianji.envs.mending import Mending, OnFailure
from tianji.envs.parallel import ParallelWorld, check_parallel, missing_parts
from tianji.envs.pool import make_pool
from tianji.envs.single import SingleWorld
from tianji.envs.vector import adapt_vector
from tianji.errors import UsageError
from tianji.wording import kind_of


def make_world(
    maker: Maker,
    num_envs: int,
    on_failure: OnFailure | None = None,
    num_threads: int = 1,
    action_mask: str = NO_MASK,
) -> World:
    """Make the environments of one actor; see build_world()."""
    with usage_errors(maker.name, maker.extra):
        if action_mask != NO_MASK and (maker.game is not None or maker.pool is not None):
            raise UsageError(
                f"Environment '{maker.name}' says nothing about legal actions, and action_mask is "
                f"'{action_mask}'. Set it to none."
            )
        if maker.game is not None:
            return make_atari(maker.game, num_envs, num_threads)
        if maker.pool is not None:
            return make_pool(maker.pool, num_envs, num_threads)
        if maker.has_agents:
            return _make_parallel(maker, num_envs, action_mask)
        if maker.is_vector:
            env = _make_vector(maker, num_envs)
            frames = getattr(env, "frames", None)
            if isinstance(frames, FrameArguments):
                return games_world(env, frames)
            has_masks = action_mask != NO_MASK
            return adapt_vector(MaskedVector(env, action_mask, maker.name) if has_masks else env)
        make = partial(_make_single, maker, action_mask)
        mending = None if on_failure is None else Mending(make, on_failure)
        return SingleWorld([make() for _ in range(num_envs)], mending)


def _make_vector(maker: Maker, num_envs: int) -> VectorEnv[Any, Any, Any]:
    env = maker.make(num_envs=num_envs)
    if not isinstance(env, VectorEnv):
        raise UsageError(
            f"Environment '{maker.name}' takes num_envs but makes {kind_of(env)}: it must "
            "make a gymnasium.vector.VectorEnv, or take no parameter of that name."
        )
    if env.num_envs != num_envs:
        raise UsageError(
            f"Environment '{maker.name}' was asked for {num_envs} environments and made "
            f"{env.num_envs}."
        )
    return env


def _make_parallel(maker: Maker, num_envs: int, action_mask: str) -> ParallelWorld:
    """Make as many environments as have num_envs agents together, or a few more."""
    first = maker.make()
    check_parallel(first, maker.name)
    more = math.ceil(num_envs / len(first.possible_agents)) - 1
    return ParallelWorld([first, *(maker.make() for _ in range(more))], maker.name, action_mask)


def _make_single(maker: Maker, action_mask: str) -> gym.Env[Any, Any]:
    env = maker.make()
    if isinstance(env, VectorEnv):
        raise UsageError(
            f"Environment '{maker.name}' makes a vector environment: it must take a parameter "
            "`num_envs` and make that many."
        )
    if not isinstance(env, gym.Env):
        text = f"Environment '{maker.name}' makes {kind_of(env)}, not a gymnasium.Env."
        raise UsageError(f"{text}{_advice_on_agents(env, maker.name)}")
    return env if action_mask == NO_MASK else MaskedEnv(env, action_mask, maker.name)


def _advice_on_agents(env: Any, name: str) -> str:
    """Return how to name what looks like a parallel environment; "" if it does not."""
    if missing_parts(env):
        return ""
    place = name if ":" in name else f"MODULE:{name}"
    return f" It looks like a parallel environment of many agents: write {PETTINGZOO}:{place}."
