"""Builds the World of an actor, and probes an environment before any process starts."""

from __future__ import annotations

import math
import resource
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from tianji.envs.find import Maker, find_maker, usage_errors
from tianji.envs.interface import NO_MASK, Spaces, World
from tianji.envs.making import make_world
from tianji.envs.masks import AUTO_MASK, advice_on_illegal, find_mask
from tianji.envs.mending import OnFailure
from tianji.envs.parallel import ParallelWorld
from tianji.envs.rewards import RewardLook, look_at_rewards
from tianji.envs.single import SingleWorld
from tianji.envs.spaces import ACTION_MASK
from tianji.envs.state import time_limits
from tianji.envs.timing import StepTimes, look_at_steps, random_actions, step_in_place
from tianji.envs.vector import autoreset_mode
from tianji.errors import EnvironmentFailed, TianjiError, UsageError
from tianji.raised import raised_in_words
from tianji.types import Array, Field

EnvSource = str | Callable[..., Any]
"""A Gymnasium id, `module:Id-v0`, `envpool:Task-v5`, `pettingzoo:module`, `module:factory`, or a
factory itself."""
EnvSources = EnvSource | tuple[EnvSource, ...]
"""One environment for all actors, or several that the actors get in turn."""
LARGE_BYTES = 8 << 20
"""If the first environment takes more memory than this, a second one is made and measured."""
MORE_ENVS = 4
"""Size of the vector environment that is timed in addition to a single environment."""
BRIEF_LOOK_S = 0.03
FIRST_STEPS = 8
"""Random actions that are tried in the first step; if all fail, the environment is refused."""


@dataclass(frozen=True, slots=True)
class Probe:
    """The properties of one environment.

    >>> Probe(spaces, keeps_final=False, vectorised="one by one", offers_state=True,
    ...       max_episode_steps=500)
    """

    spaces: Spaces
    keeps_final: bool
    """Final observations have fields of their own, see World."""
    vectorised: str
    """How several of them run together, in words."""
    offers_state: bool
    """A resumed run can continue in the middle of an episode."""
    max_episode_steps: int | None
    """Steps after which an episode is truncated; None if unknown."""
    can_be_filmed: bool = False
    """It takes render_mode and offers `rgb_array`."""
    env_bytes: int = 0
    """Memory growth of a process with its first environment, including the code it loads."""
    more_env_bytes: int = 0
    """Memory growth with each further environment; 0 if the first one is small."""
    times: StepTimes | None = None
    """Step times of one environment; None if they were not asked for or a step failed."""
    more_step_s: float = 0.0
    """Time that each further environment of an actor adds to a step."""
    remarks: tuple[str, ...] = ()
    """What the person should know: returned values that are converted, and a better id."""
    more_fields: tuple[Field, ...] = ()
    """Fields of its own that the world writes."""
    has_threads: bool = False
    """It steps its environments on threads of its own."""
    num_agents: int = 1
    """Environments, as a run counts them, that step as one: each of its agents counts."""
    rewards: RewardLook | None = None
    """What random actions have shown of the rewards; None if nobody asked or a step failed."""
    step_failure: str = ""
    """What the first step that failed raised, on one line; "" if none did."""

    @property
    def step_s(self) -> float | None:
        """Mean seconds of one step of one environment, or of one agent; None if unknown."""
        return None if self.times is None else self.times.mean_s / self.num_agents


def build_world(
    env: EnvSource,
    env_kwargs: Mapping[str, Any],
    num_envs: int,
    on_failure: OnFailure | None = None,
    num_threads: int = 1,
    action_mask: str = NO_MASK,
) -> World:
    """Build the environments of one actor, vectorised in the fastest way that they offer.

    on_failure: called when an environment raised and was replaced, which is possible for separate
    environments. Without it, and for vector environments, the error is passed on.
    num_threads: of environments that step on threads of their own. Environments with many agents
    are made until all their agents are num_envs or more.
    action_mask: `none`, `info`, or the observation that holds the masks (Spaces.masked_by).
    """
    maker = find_maker(env, env_kwargs)
    return make_world(maker, num_envs, on_failure, num_threads, action_mask)


def probe(
    env: EnvSource,
    env_kwargs: Mapping[str, Any],
    timed: bool = False,
    action_mask: str = AUTO_MASK,
    looks_at_rewards: bool = False,
) -> Probe:
    """Make one environment, reset it, step it once and check the values that it returns.

    timed: make more steps, to see how long one takes. action_mask: the setting of that name.
    looks_at_rewards: make more steps, to see whether rewards say anything about the state.
    Raises UsageError for any problem.
    """
    maker = find_maker(env, env_kwargs)
    before = _resident_bytes()
    world, rows = _reset_one(maker, action_mask)
    with usage_errors(maker.name), closing(world):
        offers_state = world.get_state() is not None
        trial = _Trial()
        _make_first_step(world, rows, trial, maker.name)
        if action_mask == AUTO_MASK and world.spaces.mask is None:
            _check_no_mask(world, maker.name)
        env_bytes = max(0, _resident_bytes() - before)
        times: StepTimes | None = None
        rewards: RewardLook | None = None
        if timed:
            with trial.may_fail(EnvironmentFailed):
                times = look_at_steps(world, rows)
        if looks_at_rewards:
            with trial.may_fail():
                rewards = look_at_rewards(world, rows)
        more = _look_at_more(maker, times, env_bytes, world.spaces.masked_by)
    num_agents = world.num_envs if maker.has_agents else 1
    return Probe(
        spaces=world.spaces,
        keeps_final=world.keeps_final,
        vectorised=_in_words(maker, world),
        offers_state=offers_state,
        max_episode_steps=maker.max_episode_steps or _time_limit(world),
        env_bytes=env_bytes,
        more_env_bytes=more.env_bytes,
        times=times,
        more_step_s=more.step_s / num_agents,
        remarks=(*maker.remarks, *world.remarks),
        can_be_filmed=maker.takes_render_mode and _draws_pictures(world),
        more_fields=world.more_fields,
        has_threads=maker.has_threads,
        num_agents=num_agents,
        rewards=rewards,
        step_failure=trial.failure,
    )


def _reset_one(maker: Maker, action_mask: str) -> tuple[World, dict[str, Array]]:
    """Make and reset one environment. With `auto`, another one takes its place if it has masks:
    the first reset shows it."""
    is_asked = action_mask != AUTO_MASK
    world = make_world(maker, 1, action_mask=action_mask if is_asked else NO_MASK)
    try:
        with usage_errors(maker.name):
            rows = make_rows(world, 1)
            world.reset(0, rows)
            found = NO_MASK
            if not is_asked:
                found = find_mask(world.spaces, world.first_info, maker.name)
    except BaseException:
        world.close()
        raise
    if found == NO_MASK:
        return world, rows
    world.close()
    return _reset_one(maker, found)


class _More(NamedTuple):
    """The cost of each further environment of a process."""

    env_bytes: int
    step_s: float


def _look_at_more(maker: Maker, times: StepTimes | None, env_bytes: int, action_mask: str) -> _More:
    """Make more environments if their memory matters or they step together, and measure them.

    If that fails, because there is only one simulator or port, they count like the first one.
    """
    step_s = times.mean_s if times is not None else 0.0
    is_large = env_bytes >= LARGE_BYTES
    if not is_large and (not maker.is_vector or times is None):
        return _More(0, step_s)
    before, count = _resident_bytes(), MORE_ENVS if maker.is_vector else 1
    try:
        with closing(make_world(maker, count, action_mask=action_mask)) as world:
            rows = make_rows(world, 1)
            world.reset(1, rows)
            grown = max(0, _resident_bytes() - before) // count if is_large else 0
            many = look_at_steps(world, rows, BRIEF_LOOK_S) if times and maker.is_vector else None
    except Exception:  # noqa: BLE001 - users' code may raise anything; a run may need only one
        return _More(env_bytes, step_s)
    if times is not None and many is not None:
        step_s = max(0.0, many.median_s - times.median_s) / (count - 1)
    return _More(grown, step_s)


def _resident_bytes() -> int:
    """Return the memory of this process; 0 if the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * resource.getpagesize()


def probe_all(
    sources: EnvSources,
    env_kwargs: Mapping[str, Any],
    timed: bool = False,
    action_mask: str = AUTO_MASK,
    looks_at_rewards: bool = False,
) -> Probe:
    """Probe all environments of a run; UsageError if two of them have different spaces.

    Returns the probe of the first one, which keeps final observations if any of them does.
    """
    distinct = dict.fromkeys(sources if isinstance(sources, tuple) else (sources,))
    found = {
        name_of(one): probe(one, env_kwargs, timed, action_mask, looks_at_rewards)
        for one in distinct
    }
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
    remarks = (remark for one in found.values() for remark in one.remarks)
    return replace(
        first,
        keeps_final=any(one.keeps_final for one in found.values()),
        remarks=tuple(dict.fromkeys(remarks)),
        step_failure=next((one.step_failure for one in found.values() if one.step_failure), ""),
        num_agents=math.lcm(*(one.num_agents for one in found.values())),
    )


class _Trial:
    """Steps that may fail: an environment that does so now and then can still be trained on."""

    first: Exception | None = None
    """What the first of them raised."""

    @property
    def failure(self) -> str:
        """What the first of them raised, on one line; "" if none did."""
        return "" if self.first is None else raised_in_words(self.first)

    @contextmanager
    def may_fail(self, *unless: type[TianjiError]) -> Iterator[None]:
        """Keep what the block raises. unless: errors that are passed on."""
        try:
            yield
        except unless:
            raise
        except Exception as error:  # noqa: BLE001 - users' code may raise anything
            self.first = self.first or error


def _make_first_step(world: World, rows: dict[str, Array], trial: _Trial, name: str) -> None:
    """Make a step of a world that was reset. After one that fails, reset and try other actions:
    some may be illegal. Raises UsageError where all of them fail."""
    for actions in random_actions(world, FIRST_STEPS):
        with trial.may_fail(TianjiError):  # the world checks the values of the first step
            step_in_place(world, actions, rows)
            return
        with trial.may_fail(TianjiError):
            world.reset(0, rows)
            continue
        return  # a run replaces what cannot be reset any more
    advice = advice_on_illegal(world.spaces, trial.failure)
    raise UsageError(
        f"Environment '{name}' failed in its first step with each of {FIRST_STEPS} random "
        f"actions: {trial.failure}.{advice}"
    ) from trial.first


def _check_no_mask(world: World, name: str) -> None:
    """Raise UsageError if a mask that was missing in the reset is there after the first step."""
    if find_mask(world.spaces, world.first_info, name) != NO_MASK:
        raise UsageError(
            f"Environment '{name}' gave no mask of legal actions in reset(), and one in step(): "
            f"add info['{ACTION_MASK}'] to the info of reset(), or ignore masks with "
            "--action-mask none."
        )


def _on_one_line(space: gym.Space[Any]) -> str:
    return " ".join(str(space).split())


def to_tasks(names: Sequence[str], sources: EnvSources) -> dict[str, EnvSource]:
    """Return the environments of a run by name."""
    in_turn = sources if isinstance(sources, tuple) else (sources,)
    return dict(zip(names, in_turn, strict=True))


def name_of(source: EnvSource) -> str:
    """Return the name of an environment; for a factory, where it was defined."""
    if isinstance(source, str):
        return source
    module = getattr(source, "__module__", "__main__")
    return f"{module}:{getattr(source, '__qualname__', type(source).__name__)}"


def make_rows(world: World, num_rows: int) -> dict[str, Array]:
    """Return arrays for `num_rows` steps of a world, outside of any channel."""
    rows = {
        field.name: np.zeros(
            (field.history + num_rows + (field.per == "obs"), world.num_envs, *field.shape),
            field.dtype,
        )
        for field in world.fields()
    }
    rows["reward"] = np.zeros((num_rows, world.num_envs), np.float32)
    for name in ("terminated", "truncated", "valid"):
        rows[name] = np.zeros((num_rows, world.num_envs), np.bool_)
    return rows


def _in_words(maker: Maker, world: World) -> str:
    if not maker.is_vector:
        return maker.words
    env = _env_of(world)
    mode = autoreset_mode(env).name.lower().replace("_", " ")
    if "autoreset_mode" not in env.metadata:
        return f"{maker.words}; it does not say when it resets, so {mode} is assumed"
    return f"{maker.words}; autoreset: {mode}"


def _draws_pictures(world: World) -> bool:
    metadata = getattr(_env_of(world), "metadata", None) or {}
    return "rgb_array" in (metadata.get("render_modes") or ())


def _time_limit(world: World) -> int | None:
    """Return the time limit of a factory's environments, which are not in the registry."""
    if isinstance(world, SingleWorld):
        limits = [limit._max_episode_steps for limit in time_limits(world.envs[0])]
        return min(limits, default=None)
    limit = getattr(_env_of(world), "max_episode_steps", None)
    return limit if isinstance(limit, int) else None


def _env_of(world: World) -> Any:
    if isinstance(world, SingleWorld | ParallelWorld):
        return world.envs[0]
    return getattr(world, "env", None)
