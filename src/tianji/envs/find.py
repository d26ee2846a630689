"""From what a person calls an environment to functions that make it.

    find_maker("CartPole-v1", {})                    a Gymnasium id
    find_maker("minigrid:MiniGrid-Empty-8x8-v0", {}) an id that importing a module registers
    find_maker("my_games:make_maze", {"size": 9})    a function or class in a module
    find_maker(make_maze, {"size": 9})               the same, in hand

A factory with a parameter called `num_envs` makes one VectorEnv of that many environments. Any
other is called once for each environment and makes a gymnasium.Env.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, load_env_creator
from gymnasium.vector import VectorEnv

from tianji.errors import TianjiError, UsageError

Factory: TypeAlias = Callable[..., Any]

EXTRAS = {"gymnasium.envs.box2d": "box2d", "gymnasium.envs.mujoco": "mujoco", "ale_py": "atari"}
"""Our extra by the module that an environment's entry point lies in."""


@dataclass(frozen=True, slots=True)
class Maker:
    """How an environment is made: many at once, or one by one. Exactly one of the two is set."""

    name: str
    words: str
    """How it is vectorised and why, for people."""
    vector: Callable[[int], VectorEnv[Any, Any, Any]] | None = None
    single: Callable[[], gym.Env[Any, Any]] | None = None
    max_episode_steps: int | None = None
    extra: str | None = None
    """Our extra that it needs."""
    takes_render_mode: bool = True


def find_maker(env: str | Factory, env_kwargs: Mapping[str, Any]) -> Maker:
    """Raises UsageError for anything that cannot be found."""
    kwargs = dict(env_kwargs)
    if "num_envs" in kwargs:
        raise UsageError(
            "env_kwargs has 'num_envs', which is a setting of the run: use `num_envs` there."
        )
    if not isinstance(env, str):
        return _from_factory(env, getattr(env, "__qualname__", repr(env)), kwargs)
    module_name, colon, name = env.partition(":")
    if not colon:
        return _from_spec(_find_spec(env), kwargs)
    module = _import(module_name, env)
    if _registered(name):
        return _from_spec(_find_spec(name), kwargs)
    return _from_factory(_find_factory(module, name, env), env, kwargs)


def make_single(env_id: str, env_kwargs: Mapping[str, Any]) -> gym.Env[Any, Any]:
    """One environment of a Gymnasium id, also where it has a vector environment of its own."""
    spec = _find_spec(env_id)
    with usage_errors(spec.id, _extra_of(spec)):
        return gym.make(spec, disable_env_checker=True, **env_kwargs)


@contextmanager
def usage_errors(name: str, extra: str | None = None) -> Iterator[None]:
    """Say what went wrong inside an environment in one sentence, the first cause first."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # hints for programmers; `tianji doctor` has ours
            yield
    except TianjiError:
        raise
    except Exception as error:
        cause = _first_cause(error)
        missing = isinstance(cause, ImportError | gym.error.DependencyNotInstalled)
        advice = f" Install it with: pip install 'tianji[{extra}]'" if extra and missing else ""
        raise UsageError(
            f"Environment '{name}' does not work: {type(cause).__name__}: {cause}{advice}"
        ) from error


def _first_cause(error: BaseException) -> BaseException:
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return error if before is None else _first_cause(before)


def _from_factory(factory: Factory, name: str, kwargs: dict[str, Any]) -> Maker:
    if not callable(factory):
        raise UsageError(f"Environment '{name}' is a {type(factory).__name__}, not a function.")
    with usage_errors(name):
        parameters = inspect.signature(factory).parameters
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    takes_render_mode = takes_all or "render_mode" in parameters
    if "num_envs" not in parameters:
        return Maker(
            name,
            "one by one in the actor's process",
            single=lambda: factory(**kwargs),
            takes_render_mode=takes_render_mode,
        )
    return Maker(
        name,
        "all at once, by the factory's own vector environment",
        vector=lambda num_envs: factory(num_envs=num_envs, **kwargs),
        takes_render_mode=takes_render_mode,
    )


def _from_spec(spec: EnvSpec, kwargs: dict[str, Any]) -> Maker:
    if kwargs.get("max_episode_steps", 0) is None:  # to gymnasium.make the same as not given
        del kwargs["max_episode_steps"]
    limit = kwargs.get("max_episode_steps", spec.max_episode_steps)
    limit = None if limit == -1 else limit
    extra = _extra_of(spec)
    with usage_errors(spec.id, extra):
        parameters = _vector_parameters(spec)
    obstacle = _vector_obstacle(spec, kwargs, parameters)
    if obstacle is not None:
        return Maker(
            spec.id,
            f"one by one in the actor's process: {obstacle}",
            single=lambda: gym.make(spec, disable_env_checker=True, **kwargs),
            max_episode_steps=limit,
            extra=extra,
        )
    if "num_threads" in parameters:
        # The plan counts with one core for each actor; native ones would take all of them.
        kwargs.setdefault("num_threads", 1)
    return Maker(
        spec.id,
        "all at once, by its own vector environment",
        vector=lambda num_envs: gym.make_vec(spec, num_envs, "vector_entry_point", **kwargs),
        max_episode_steps=limit,
        extra=extra,
    )


def _vector_parameters(spec: EnvSpec) -> Mapping[str, inspect.Parameter]:
    entry = spec.vector_entry_point
    if entry is None:
        return {}
    return inspect.signature(entry if callable(entry) else load_env_creator(entry)).parameters


def _vector_obstacle(
    spec: EnvSpec, kwargs: dict[str, Any], parameters: Mapping[str, inspect.Parameter]
) -> str | None:
    """Why its own vector environment would not be the same environment, if it would not."""
    if spec.vector_entry_point is None:
        return "it has no vector environment of its own"
    if spec.additional_wrappers:
        return "its vector environment lacks the wrappers that it is registered with"
    if kwargs.get("max_episode_steps") == -1:
        return "its vector environment cannot run without a time limit"
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return None
    wanted = {*spec.kwargs, *kwargs, *(("max_episode_steps",) if spec.max_episode_steps else ())}
    unknown = sorted(wanted - set(parameters))
    return f"its vector environment does not know {', '.join(unknown)}" if unknown else None


def _extra_of(spec: EnvSpec) -> str | None:
    entry = spec.entry_point if isinstance(spec.entry_point, str) else ""
    return next((extra for module, extra in EXTRAS.items() if entry.startswith(module)), None)


def _registered(env_id: str) -> bool:
    """Also without its version, as Gymnasium allows."""
    return env_id in gym.registry or any(
        env_id == spec.id.rpartition("-v")[0] for spec in gym.registry.values()
    )


def _find_spec(env_id: str) -> EnvSpec:
    atari = env_id.startswith("ALE/") or "NoFrameskip" in env_id
    if not _registered(env_id) and (atari or importlib.util.find_spec("ale_py")):
        with usage_errors(env_id, "atari"):
            importlib.import_module("ale_py")  # registers its environments
    if env_id in gym.registry:
        return gym.registry[env_id]
    versions = [spec for spec in gym.registry.values() if spec.id.rpartition("-v")[0] == env_id]
    if versions:
        return max(versions, key=lambda spec: spec.version or 0)
    raise UsageError(
        f"Unknown environment '{env_id}'.{_did_you_mean(env_id, gym.registry)} Use the id of a "
        "registered Gymnasium environment, 'module:Id-v0' for one that a module registers, or "
        "'module:factory' for a function or class of your own."
    )


def _find_factory(module: ModuleType, name: str, env: str) -> Factory:
    try:
        factory: Factory = getattr(module, name)
    except AttributeError as error:
        raise UsageError(
            f"Environment '{env}': module '{module.__name__}' neither registers an environment "
            f"'{name}' nor has a function or class of that name."
            f"{_did_you_mean(name, [*vars(module), *gym.registry])}"
        ) from error
    return factory


def _import(module_name: str, env: str) -> ModuleType:
    """Modules in the current folder count too, as they do for `python -m`."""
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.append(os.getcwd())
    with usage_errors(env):
        return importlib.import_module(module_name)


def _did_you_mean(name: str, known: Any) -> str:
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=3)
    return (
        f" Did you mean {' or '.join(repr(by_lower[match]) for match in close)}?" if close else ""
    )
