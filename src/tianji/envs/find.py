"""Finds the function that makes an environment, from the name that a person gives it.

    find_maker("CartPole-v1", {})                    a Gymnasium id
    find_maker("minigrid:MiniGrid-Empty-8x8-v0", {}) an id that importing a module registers
    find_maker("envpool:Pong-v5", {})                a task of EnvPool
    find_maker("pettingzoo:my_games.tag", {})        a parallel environment of a module
    find_maker("my_games:make_maze", {"size": 9})    a function or class in a module
    find_maker(make_maze, {"size": 9})               a function or class itself

A factory with a parameter called `num_envs` makes one VectorEnv with that many environments. Any
other factory is called once for each environment and makes a gymnasium.Env.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import platform
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, load_env_creator

from tianji.envs.ids import ATARI, GAMES, registered, stacked_game
from tianji.envs.suggestions import advice_on_module, is_path, maker_names, module_at
from tianji.errors import TianjiError, UsageError, did_you_mean
from tianji.importing import import_users
from tianji.raised import raised_in_words
from tianji.wording import kind_of

Factory: TypeAlias = Callable[..., Any]

EXTRAS = {"gymnasium.envs.box2d": "box2d", "gymnasium.envs.mujoco": "mujoco", GAMES: "atari"}
"""The extra of this package for each module that holds environments' entry points."""
PACKAGES = {"cv2": "opencv-python-headless"}
"""The package of a module that Gymnasium's wrappers for images need."""
ENVPOOL = "envpool"
"""The prefix of EnvPool's tasks, its module and our extra."""
PETTINGZOO = "pettingzoo"
"""The prefix of environments with many agents, the package of many of them and our extra."""
PARALLEL = "parallel_env"
"""What modules call the function that makes their parallel environment."""
OWN_WAY = {"autoreset_mode", "batch_size", "grayscale"}
"""Arguments with which a game is an ordinary vector environment, whose stacks are stored whole."""
WHOLE_STACKS = "whole_stacks"
"""An argument of ours for games: store every stack with all its frames, not each frame once."""
TURNS = ("env", "raw_env")
"""What they call the functions that make environments whose agents take turns."""
HAS_VERSION = re.compile(r"-v\d+$")
"""What the id of an environment ends with; without it the newest version is meant."""
ONE_BY_ONE = "one by one in the actor's process"


class PoolTask(NamedTuple):
    """A task of EnvPool with its arguments: PoolTask("Pong-v5", {"frame_skip": 2})."""

    id: str
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes an environment: Maker("CartPole-v1", "all at once, ...", make, is_vector=True)."""

    name: str
    words: str
    """How the environments are vectorised and why, for people."""
    make: Factory
    """make(num_envs=8) returns a VectorEnv, or make() a single Env."""
    is_vector: bool
    max_episode_steps: int | None = None
    extra: str | None = None
    """The extra of this package that it needs."""
    takes_render_mode: bool = True
    game: Mapping[str, Any] | None = None
    """Arguments of ALE's vector environment (envs/atari.py), where it is one of its games."""
    pool: PoolTask | None = None
    """The task of EnvPool (envs/pool.py), where it is one."""
    has_agents: bool = False
    """make() makes a parallel environment of PettingZoo (envs/parallel.py)."""
    remarks: tuple[str, ...] = ()
    """What the person should know before training on it, in words."""

    @property
    def has_threads(self) -> bool:
        """Return whether its environments step on threads of their own."""
        return self.game is not None or self.pool is not None


def find_maker(env: str | Factory, env_kwargs: Mapping[str, Any]) -> Maker:
    """Return the maker of an environment; UsageError if there is no such environment."""
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
    if module_name == ENVPOOL:
        return _from_envpool(env, name, kwargs)
    if module_name == PETTINGZOO:
        return _from_pettingzoo(env, name, kwargs)
    module = _import(module_name, env)
    spec = registered(name)
    if spec is not None:
        return _from_spec(spec, kwargs)
    return _from_factory(_find_factory(module, name, env), env, kwargs)


def make_single(env_id: str, env_kwargs: Mapping[str, Any]) -> gym.Env[Any, Any]:
    """Make one environment of a Gymnasium id, even if it has its own vector environment."""
    spec = _find_spec(env_id)
    with usage_errors(spec.id, _extra_of(spec)):
        return gym.make(spec, disable_env_checker=True, **env_kwargs)


@contextmanager
def usage_errors(name: str, extra: str | None = None) -> Iterator[None]:
    """Turn an exception of an environment into a UsageError that states its first cause."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # hints for programmers; `tianji doctor` has ours
            yield
    except TianjiError:
        raise
    except Exception as error:
        cause = _first_cause(error)
        missing = isinstance(cause, ImportError | gym.error.DependencyNotInstalled)
        advice = _how_to_install(extra, cause) if missing else ""
        text = f"Environment '{name}' does not work: {raised_in_words(cause)}"
        raise UsageError(f"{text}. {advice}" if advice else text) from error


def _how_to_install(extra: str | None, cause: BaseException) -> str:
    package = PACKAGES.get(getattr(cause, "name", None) or "")
    if package is not None:
        return f"Install it with: pip install {package}"
    if extra is None:
        return ""
    advice = f"Install it with: pip install 'tianji[{extra}]'"
    if extra == ENVPOOL:
        mine = ".".join(platform.python_version_tuple()[:2])
        advice += (
            f" (this is Python {mine} on {platform.machine()}; if EnvPool has no package for it, "
            "use a Python for which it has one, or the same game of another package, such as "
            "ALE/Pong-v5)"
        )
    return advice


def _first_cause(error: BaseException) -> BaseException:
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return error if before is None else _first_cause(before)


def _from_factory(factory: Factory, name: str, kwargs: dict[str, Any]) -> Maker:
    if not callable(factory):
        raise UsageError(f"Environment '{name}' is {kind_of(factory)}, not a function.")
    with usage_errors(name):
        parameters = inspect.signature(factory).parameters
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    is_vector = "num_envs" in parameters
    return Maker(
        name,
        "all at once, by the factory's own vector environment" if is_vector else ONE_BY_ONE,
        partial(factory, **kwargs),
        is_vector,
        takes_render_mode=takes_all or "render_mode" in parameters,
    )


def _from_envpool(env: str, task: str, kwargs: dict[str, Any]) -> Maker:
    with usage_errors(env, ENVPOOL):
        envpool: Any = importlib.import_module(ENVPOOL)
        tasks = envpool.list_all_envs()
    if task not in tasks:
        raise UsageError(f"EnvPool has no task '{task}'.{did_you_mean(task, tasks, 3)}")
    words = "all at once, on threads of EnvPool"
    make = partial(envpool.make_gymnasium, task, **kwargs)
    return Maker(env, words, make, True, extra=ENVPOOL, pool=PoolTask(task, kwargs))


def _from_pettingzoo(env: str, name: str, kwargs: dict[str, Any]) -> Maker:
    """Find `module` or `module:function`."""
    module_name, _, function = name.partition(":")
    extra = PETTINGZOO if module_name.split(".")[0] == PETTINGZOO else None
    module = _import(module_name, env, extra)
    if not function:
        _refuse_turns(module, env)
    factory = _find_factory(module, function or PARALLEL, env)
    words = f"{ONE_BY_ONE}, their agents side by side"
    make = partial(factory, **kwargs)
    return Maker(env, words, make, False, extra=extra, has_agents=True)


def _refuse_turns(module: ModuleType, env: str) -> None:
    """Raise UsageError if the module has an environment whose agents take turns, and no other."""
    makers = [name for name in TURNS if hasattr(module, name)]
    if makers and not hasattr(module, PARALLEL):
        raise UsageError(
            f"Environment '{env}': module '{module.__name__}' has '{makers[0]}' and no "
            f"'{PARALLEL}', so its agents take turns (AEC). TianJi trains parallel environments, "
            f"in which all agents act in every step: name a module with '{PARALLEL}', or "
            f"'{PETTINGZOO}:MODULE:NAME' for a function of yours that makes one."
        )


def _from_spec(spec: EnvSpec, kwargs: dict[str, Any]) -> Maker:
    if kwargs.get("max_episode_steps", 0) is None:  # to gymnasium.make the same as not given
        del kwargs["max_episode_steps"]
    limit = kwargs.get("max_episode_steps", spec.max_episode_steps)
    limit = None if limit == -1 else limit
    extra = _extra_of(spec)
    with usage_errors(spec.id, extra):
        parameters = _vector_parameters(spec)
    is_game = spec.vector_entry_point == ATARI
    theirs = {name: kwargs[name] for name in kwargs if not (is_game and name == WHOLE_STACKS)}
    obstacle = _vector_obstacle(spec, theirs, parameters)
    if is_game and obstacle is None and not OWN_WAY & kwargs.keys():
        stored = (
            "stacks are stored whole" if kwargs.get(WHOLE_STACKS) else "each frame is stored once"
        )
        words = f"all at once, on threads of the emulator; {stored}"
        make = partial(gym.make, spec, disable_env_checker=True)
        return Maker(spec.id, words, make, True, limit, extra, game={**spec.kwargs, **kwargs})
    if obstacle is not None:
        make = partial(gym.make, spec, disable_env_checker=True, **kwargs)
        words = f"{ONE_BY_ONE}: {obstacle}"
        return Maker(spec.id, words, make, False, limit, extra, remarks=_remarks_on(spec, kwargs))
    if "num_threads" in parameters:
        # The plan gives each actor one core; native environments would take all of them.
        kwargs.setdefault("num_threads", 1)
    make_all = partial(gym.make_vec, spec, vectorization_mode="vector_entry_point", **kwargs)
    words = "all at once, by its own vector environment"
    return Maker(spec.id, words, make_all, True, limit, extra)


def _remarks_on(spec: EnvSpec, kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    game = stacked_game(spec)
    if game is None or "obs_type" in kwargs:  # the person knows what it gives
        return ()
    return (
        f"'{spec.id}' is an older id of '{game}'. It gives single frames as the emulator draws "
        f"them, '{game}' small grey ones in stacks: use --env {game}.",
    )


def _vector_parameters(spec: EnvSpec) -> Mapping[str, inspect.Parameter]:
    entry = spec.vector_entry_point
    if entry is None:
        return {}
    return inspect.signature(entry if callable(entry) else load_env_creator(entry)).parameters


def _vector_obstacle(
    spec: EnvSpec, kwargs: dict[str, Any], parameters: Mapping[str, inspect.Parameter]
) -> str | None:
    """Return why its own vector environment would be a different environment; None if not."""
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


def full_id(name: str) -> str:
    """Return the id that a name without a version means; any other name stays as it is.

    >>> full_id("Acrobot"), full_id("chase:Chase")
    ('Acrobot-v1', 'chase:Chase')
    """
    if ":" in name or HAS_VERSION.search(name):
        return name
    spec = _look_up(name)
    return name if spec is None else spec.id


def _look_up(env_id: str) -> EnvSpec | None:
    """Return the spec of an id, which may be a game that is registered when its package is
    imported."""
    is_atari = env_id.startswith("ALE/") or "NoFrameskip" in env_id
    spec = registered(env_id)
    if spec is None and (is_atari or importlib.util.find_spec(GAMES)):
        with usage_errors(env_id, "atari"):
            importlib.import_module(GAMES)
        spec = registered(env_id)
    return spec


def _find_spec(env_id: str) -> EnvSpec:
    spec = _look_up(env_id)
    if spec is None and (advice := advice_on_module(env_id)):
        raise UsageError(advice)
    if spec is None:
        raise UsageError(
            f"Unknown environment '{env_id}'.{did_you_mean(env_id, gym.registry, 3)} Use the id of "
            "a registered Gymnasium environment, 'module:Id-v0' for one that a module registers, "
            "or 'module:factory' for a function or class of your own."
        )
    return spec


def _find_factory(module: ModuleType, name: str, env: str) -> Factory:
    try:
        factory: Factory = getattr(module, name)
    except AttributeError as error:
        if module.__name__ == "__main__":
            raise UsageError(_how_to_name(env, name)) from error
        raise UsageError(
            f"Environment '{env}': module '{module.__name__}' neither registers an environment "
            f"'{name}' nor has a function or class of that name."
            f"{did_you_mean(name, [*maker_names(module), *gym.registry], 3)}"
        ) from error
    return factory


def _how_to_name(env: str, name: str) -> str:
    """Return what to do about an environment of a script, which only that script can name."""
    maker = name if name.isidentifier() else "MAKER"
    return (
        f"Environment '{env}' was defined in the script that trained, and cannot be found from "
        f"here. In Python, pass it: tianji.load(RUN, env={maker}), or tianji.run.resume_run("
        f"RUN_DIR, {{}}, env={maker}). For the commands, move it into a module, such as chase.py, "
        f"and train with --env chase:{maker}."
    )


def _import(module_name: str, env: str, extra: str | None = None) -> ModuleType:
    if is_path(module_name):
        right = env.replace(module_name, module_at(module_name))
        raise UsageError(f"Environment '{env}' names a file. Name its module: '{right}'.")
    with usage_errors(env, extra):
        return import_users(module_name, to_find="its environment")
