"""Building the World of an actor, and asking about an environment before any process starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv

from tianji.envs.find import Maker, find_maker, usage_errors
from tianji.envs.interface import Spaces, World
from tianji.envs.single import SingleWorld
from tianji.envs.state import time_limits
from tianji.envs.timing import glance_at_step
from tianji.envs.vector import adapt_vector, autoreset_mode
from tianji.errors import UsageError
from tianji.types import Array

EnvSource = str | Callable[..., Any]
"""A Gymnasium id, `module:Id-v0`, `module:factory`, or a factory in hand."""
EnvSources = EnvSource | tuple[EnvSource, ...]
"""One environment for all actors, or a tuple with theirs in turn."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What one environment is like."""

    spaces: Spaces
    keeps_final: bool
    """Whether final observations have fields of their own, see World."""
    vectorised: str
    """How many of them are run together, in words."""
    offers_state: bool
    """Whether a run can go on in the middle of its episodes after a resume."""
    max_episode_steps: int | None
    """Steps after which an episode is truncated, where that is known."""
    can_be_filmed: bool = False
    """Whether it takes render_mode and says that it draws pictures."""
    step_s: float | None = None
    """Seconds of one step of one environment, at a first glance; None unless it was asked for, or
    where a step failed."""


def build_world(env: EnvSource, env_kwargs: Mapping[str, Any], num_envs: int) -> World:
    """The environments of one actor, vectorised the fastest way that they offer."""
    return _build(find_maker(env, env_kwargs), num_envs)


def probe(env: EnvSource, env_kwargs: Mapping[str, Any], timed: bool = False) -> Probe:
    """Make one environment, reset it and look at it; UsageError for whatever is wrong with it.

    timed: make a few steps too, to see how long one takes.
    """
    maker = find_maker(env, env_kwargs)
    world = _build(maker, 1)
    with usage_errors(maker.name):
        rows = make_rows(world, 1)
        world.reset(0, rows)
        offers_state = world.get_state() is not None
        step_s = glance_at_step(world, rows) if timed else None
        world.close()
    return Probe(
        spaces=world.spaces,
        keeps_final=world.keeps_final,
        vectorised=_in_words(maker, world),
        offers_state=offers_state,
        max_episode_steps=maker.max_episode_steps or _time_limit(world),
        can_be_filmed=maker.takes_render_mode and _draws_pictures(world),
        step_s=step_s,
    )


def probe_all(sources: EnvSources, env_kwargs: Mapping[str, Any], timed: bool = False) -> Probe:
    """What all environments of a run are like; UsageError where two of them differ in a space.

    Returns the first one's, with room for final observations where any of them keeps some.
    """
    distinct = dict.fromkeys(sources if isinstance(sources, tuple) else (sources,))
    found = {name_of(source): probe(source, env_kwargs, timed) for source in distinct}
    (first_name, first), *others = found.items()
    for name, other in others:
        for kind in ("observation", "action"):
            mine, yours = getattr(first.spaces, kind), getattr(other.spaces, kind)
            if mine != yours:
                raise UsageError(
                    f"All environments must have the same spaces, since they share one policy: the "
                    f"{kind} space of '{first_name}' is {_on_one_line(mine)}, that of '{name}' is "
                    f"{_on_one_line(yours)}."
                )
    return replace(first, keeps_final=any(one.keeps_final for one in found.values()))


def _on_one_line(space: gym.Space[Any]) -> str:
    return " ".join(str(space).split())


def to_tasks(names: Sequence[str], sources: EnvSources) -> dict[str, EnvSource]:
    """The environments of a run by name."""
    in_turn = sources if isinstance(sources, tuple) else (sources,)
    return dict(zip(names, in_turn, strict=True))


def name_of(source: EnvSource) -> str:
    """What a person knows an environment by; of a factory in hand, where it was defined."""
    if isinstance(source, str):
        return source
    module = getattr(source, "__module__", "__main__")
    return f"{module}:{getattr(source, '__qualname__', type(source).__name__)}"


def make_rows(world: World, num_rows: int) -> dict[str, Array]:
    """Arrays for `num_rows` steps of a world, outside of any channel."""
    rows = {
        field.name: np.zeros(
            (num_rows + (field.per == "obs"), world.num_envs, *field.shape), field.dtype
        )
        for field in world.observation_fields()
    }
    rows["reward"] = np.zeros((num_rows, world.num_envs), np.float32)
    for name in ("terminated", "truncated", "valid"):
        rows[name] = np.zeros((num_rows, world.num_envs), np.bool_)
    return rows


def _build(maker: Maker, num_envs: int) -> World:
    with usage_errors(maker.name, maker.extra):
        if maker.vector is not None:
            return adapt_vector(_checked_vector(maker, maker.vector(num_envs), num_envs))
        assert maker.single is not None
        return SingleWorld([_checked_single(maker, maker.single()) for _ in range(num_envs)])


def _checked_vector(maker: Maker, env: Any, num_envs: int) -> VectorEnv[Any, Any, Any]:
    if not isinstance(env, VectorEnv):
        raise UsageError(
            f"Environment '{maker.name}' takes num_envs but makes a {type(env).__name__}: it must "
            "make a gymnasium.vector.VectorEnv, or take no parameter of that name."
        )
    if env.num_envs != num_envs:
        raise UsageError(
            f"Environment '{maker.name}' was asked for {num_envs} environments and made "
            f"{env.num_envs}."
        )
    return env


def _checked_single(maker: Maker, env: Any) -> gym.Env[Any, Any]:
    if isinstance(env, VectorEnv):
        raise UsageError(
            f"Environment '{maker.name}' makes a vector environment: it must take a parameter "
            "`num_envs` and make that many."
        )
    if not isinstance(env, gym.Env):
        raise UsageError(
            f"Environment '{maker.name}' makes a {type(env).__name__}, not a gymnasium.Env."
        )
    return env


def _in_words(maker: Maker, world: World) -> str:
    env = getattr(world, "env", None)
    if env is None:
        return maker.words
    mode = autoreset_mode(env).name.lower().replace("_", " ")
    if "autoreset_mode" not in env.metadata:
        return f"{maker.words}; it does not say when it resets, so {mode} is assumed"
    return f"{maker.words}; autoreset: {mode}"


def _draws_pictures(world: World) -> bool:
    env = world.envs[0] if isinstance(world, SingleWorld) else getattr(world, "env", None)
    metadata = getattr(env, "metadata", None) or {}
    return "rgb_array" in (metadata.get("render_modes") or ())


def _time_limit(world: World) -> int | None:
    """For factories, which have no entry in the registry that would say it."""
    if isinstance(world, SingleWorld):
        limits = [limit._max_episode_steps for limit in time_limits(world.envs[0])]
        return min(limits, default=None)
    limit = getattr(getattr(world, "env", None), "max_episode_steps", None)
    return limit if isinstance(limit, int) else None
