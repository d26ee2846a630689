"""The checks of `tianji doctor --env X`: a few short runs with random actions, no training.

for finding in check_environment("CartPole-v1", {}): ...
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from tianji.envs.build import (
    EnvSource,
    Probe,
    build_world,
    make_rows,
    name_of,
    probe,
    probe_all,
)
from tianji.envs.find import usage_errors
from tianji.envs.interface import World
from tianji.envs.masks import mask_in_words, to_legal, to_legal_by
from tianji.envs.spaces import observation_leaves
from tianji.envs.timing import StepTimes, random_actions
from tianji.envs.vector import NextStepWorld
from tianji.errors import TianjiError
from tianji.types import FINAL_OBS, OBS, Array, leaf_name

NUM_ENVS = 4
MIN_ROWS, MAX_ROWS = 16, 1000
RUN_S = 0.4
"""Seconds that one run may take; a slow environment makes fewer rows."""
MAX_CONTAINS = 500
"""Number of observations that are compared with their space, at about 10 us each."""
MOST_NUMBERS = 200 * 200 * 4
"""Size of an observation above which it slows down everything; Atari's stacks have 28,224."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Finding("warn", "No episode ended in 4000 steps.", "Give it a time limit.")"""

    level: Literal["ok", "warn", "error"]
    what: str
    advice: str = ""
    """The reason why it matters, and what to do."""


def check_environment(env: EnvSource, env_kwargs: Mapping[str, Any]) -> list[Finding]:
    """Return all findings in the order of the checks; an error that ends them comes last."""
    findings: list[Finding] = []
    try:
        with usage_errors(name_of(env)):
            seen = probe(env, env_kwargs, timed=True)
            findings.extend(_check_spaces(seen))
            findings.extend(_check_times(seen.times))
            mask = seen.spaces.masked_by
            with (
                closing(build_world(env, env_kwargs, NUM_ENVS, action_mask=mask)) as world,
                closing(build_world(env, env_kwargs, NUM_ENVS, action_mask=mask)) as twin,
            ):
                for finding in _check_runs(seen, world, twin):
                    findings.append(finding)  # one by one: those before an error are kept
            findings.append(Finding("ok", "close() works."))
    except TianjiError as error:
        findings.append(Finding("error", str(error), "The remaining checks were skipped."))
    return findings


def check_together(envs: tuple[EnvSource, ...], env_kwargs: Mapping[str, Any]) -> list[Finding]:
    """Check whether the actors of one run can have different ones of these environments."""
    try:
        probe_all(envs, env_kwargs)
    except TianjiError as error:
        return [Finding("error", str(error))]
    return [Finding("ok", f"All {len(envs)} have the same spaces: they can share one policy.")]


def _check_spaces(seen: Probe) -> Iterator[Finding]:
    for leaf in observation_leaves(seen.spaces.observation):
        name = f"Observation '{leaf.key}'" if leaf.key else "Observation"
        yield Finding(
            "ok", f"{name}: {type(leaf.space).__name__} {leaf.shape}, stored as {leaf.dtype}."
        )
        if math.prod(leaf.shape) > MOST_NUMBERS:
            yield Finding(
                "warn",
                f"{name} has {math.prod(leaf.shape):,} numbers in every step.",
                "Memory, copies and the network grow with it. Images can be made smaller with "
                "gymnasium.wrappers.ResizeObservation.",
            )
    action = seen.spaces.action
    yield Finding("ok", f"Action: {action}.")
    if seen.spaces.mask is not None:
        yield Finding("ok", mask_in_words(seen.spaces))
    if isinstance(action, spaces.Box) and not action.is_bounded("both"):
        yield Finding(
            "warn",
            "The action space has no finite bounds.",
            "Policies keep actions within the bounds: set finite low and high of the Box.",
        )
    yield from (Finding("warn", remark) for remark in seen.remarks)
    yield Finding("ok", f"Environments run {seen.vectorised}.")


def _check_times(times: StepTimes | None) -> Iterator[Finding]:
    if times is None:
        return  # a step failed: the runs that follow report it
    if times.is_uneven:
        yield Finding(
            "warn",
            times.in_words(),
            "During a long step the other environments of the actor wait, and so does a learner "
            "that may not use older data. If possible, a run gives each such environment an actor "
            "of its own. Longer unrolls, more environments or a larger max_lag also help.",
        )
        return
    yield Finding("ok", times.in_words())


def _check_runs(seen: Probe, world: World, twin: World) -> Iterator[Finding]:
    _, row_s = _run(world, 1, random_actions(world, MIN_ROWS))
    actions = random_actions(world, int(np.clip(RUN_S / row_s, MIN_ROWS, MAX_ROWS)))
    rows, row_s = _run(world, 1, actions)
    speed = world.num_envs / row_s
    yield Finding("ok", f"Speed: {speed:,.0f} steps/s, {world.num_envs} in one process.")
    yield from _check_numbers(world, rows)
    yield from _check_same_as_single(world)
    yield from _check_seeds(rows, _run(twin, 1, actions)[0], _run(twin, 2, actions)[0])
    yield from _check_episodes(seen, rows)
    yield from _check_final(world, rows)
    if isinstance(world, NextStepWorld):
        yield from _check_reset_rows(world, actions)
    yield from _check_state(world, twin, actions[:MIN_ROWS])


def _run(world: World, seed: int, actions: Array) -> tuple[dict[str, Array], float]:
    """Make a run; return its rows and the seconds for each row."""
    rows = make_rows(world, len(actions))
    world.reset(seed, rows)
    started = time.perf_counter()
    for t, row_actions in enumerate(actions):
        world.step(to_legal(row_actions, rows, t, world.spaces), rows, t)
    return rows, (time.perf_counter() - started) / len(actions)


def _check_numbers(world: World, rows: Mapping[str, Array]) -> Iterator[Finding]:
    for leaf in observation_leaves(world.spaces.observation):
        name = f"observation '{leaf.key}'" if leaf.key else "observation"
        values = rows[leaf_name(OBS, leaf.key)].reshape(-1, *leaf.shape)
        if not np.isfinite(values).all():
            yield Finding(
                "error", f"The {name} has NaN or infinite values.", "Training would stop."
            )
        elif not all(leaf.space.contains(value) for value in values[:MAX_CONTAINS]):
            yield Finding(
                "warn",
                f"The {name} leaves its space {leaf.space}.",
                "Normalisation and image scaling rely on the space: correct its bounds.",
            )
        else:
            yield Finding("ok", f"The {name} stays in its space.")
    if not np.isfinite(rows["reward"]).all():
        yield Finding(
            "error", "Rewards are NaN or infinite.", "Training would stop at the first one."
        )


def _check_same_as_single(world: World) -> Iterator[Finding]:
    """Compare the spaces of a vector entry point with those of gymnasium.make()."""
    spec = getattr(getattr(world, "env", None), "spec", None)
    if spec is None or spec.id not in gym.registry or gym.registry[spec.id].entry_point is None:
        return
    single = gym.make(spec.id, disable_env_checker=True)
    vector = world.spaces.seen
    if single.observation_space != vector or single.action_space != world.spaces.action:
        yield Finding(
            "warn",
            f"Its vector environment observes {vector}, gymnasium.make() gives "
            f"{single.observation_space}.",
            "Training and evaluation use the vector environment; see the documentation of that "
            "package for how it changes observations and rewards.",
        )
    single.close()


def _check_seeds(
    rows: Mapping[str, Array], same: Mapping[str, Array], other: Mapping[str, Array]
) -> Iterator[Finding]:
    names = [name for name in rows if name.startswith(OBS)]
    if all(np.array_equal(rows[name], same[name], equal_nan=True) for name in (*names, "reward")):
        yield Finding("ok", "The same seed and actions give the same episodes.")
    else:
        yield Finding(
            "warn",
            "The same seed and actions give different episodes.",
            "Runs cannot be repeated: draw all random numbers from self.np_random, after "
            "super().reset(seed=seed).",
        )
    if all(np.array_equal(rows[name], other[name], equal_nan=True) for name in names):
        yield Finding(
            "warn",
            "Different seeds give the same episodes.",
            "With equal actions, many environments then give the same experience as one: draw "
            "random numbers from self.np_random, after super().reset(seed=seed).",
        )
    else:
        yield Finding("ok", "Different seeds give different episodes.")


def _check_episodes(seen: Probe, rows: Mapping[str, Array]) -> Iterator[Finding]:
    if not rows["valid"].any():
        yield Finding(
            "error",
            f"No valid step came out of {len(rows['valid'])} rows with random actions.",
            "There would be nothing to train on. An environment with many agents must have some of "
            "its possible_agents in `agents` after reset().",
        )
        return
    terminated, truncated = int(rows["terminated"].sum()), int(rows["truncated"].sum())
    ended = int((rows["terminated"] | rows["truncated"]).sum())
    limit = seen.max_episode_steps
    if ended == 0 and limit is None:
        yield Finding(
            "warn",
            f"No episode ended in {rows['valid'].sum()} random steps, and no time limit is known.",
            "A return is known only at the end of an episode: wrap the environment in "
            "gymnasium.wrappers.TimeLimit if episodes can last forever.",
        )
        return
    within = f" Episodes are truncated after {limit} steps." if limit is not None else ""
    yield Finding(
        "ok",
        f"{ended} episodes ended in {rows['valid'].sum()} random steps: {terminated} terminated, "
        f"{truncated} truncated; {np.count_nonzero(~rows['valid'])} reset rows are left out of "
        f"training.{within}",
    )


def _check_final(world: World, rows: Mapping[str, Array]) -> Iterator[Finding]:
    """Check that the last observation of an episode is not the first one of the next."""
    t, i = np.nonzero(rows["terminated"] | rows["truncated"])
    t, i = t[t < len(rows["valid"]) - 1], i[t < len(rows["valid"]) - 1]
    if len(t) == 0:
        return
    for leaf in observation_leaves(world.spaces.observation):
        obs = rows[leaf_name(OBS, leaf.key)]
        final = rows[leaf_name(FINAL_OBS, leaf.key)][t, i] if world.keeps_final else obs[t + 1, i]
        first = obs[t + 1, i] if world.keeps_final else obs[t + 2, i]
        if not np.array_equal(final, first):
            yield Finding("ok", "The final observation of an episode is passed on.")
            return
    yield Finding(
        "warn",
        "The final observation of every episode equals the first one of the next.",
        "The value of a truncated episode is computed from its final observation: return that one, "
        "not the first observation after the reset.",
    )


def _check_reset_rows(world: NextStepWorld, actions: Array) -> Iterator[Finding]:
    """Check the rows of the vector environment itself, since the world clears them."""
    mask = world.spaces.mask
    observation, _ = world.env.reset(seed=1)
    ended = np.zeros(world.num_envs, np.bool_)
    for drawn in actions:
        legal = drawn
        if mask is not None:
            legal = to_legal_by(drawn, observation[mask], world.spaces.action)
        returned = world.env.step(world.cast_actions(legal))
        observation, reward, terminated, truncated, _ = returned
        if np.any(ended & (np.asarray(reward) != 0)):
            yield Finding(
                "error",
                "It gives a reward in the step that only resets it.",
                "It seems to reset in the same step in which the episode ends: declare that in "
                "metadata['autoreset_mode'] (gymnasium.vector.AutoresetMode).",
            )
            return
        ended = np.logical_or(terminated, truncated)
    yield Finding("ok", "Reset rows have no rewards and no endings.")


def _check_state(world: World, twin: World, actions: Array) -> Iterator[Finding]:
    rows, half = make_rows(world, len(actions)), len(actions) // 2
    world.reset(3, rows)
    for t in range(half):
        world.step(to_legal(actions[t], rows, t, world.spaces), rows, t)
    state = world.get_state()
    if state is None:
        yield Finding(
            "ok",
            "It has no get_state() and set_state(): after a resume, new episodes begin.",
            "Add both to the environment or to a wrapper to continue episodes exactly.",
        )
        return
    again = {name: array.copy() for name, array in rows.items()}
    twin.set_state(state)
    for t in range(half, len(actions)):
        world.step(to_legal(actions[t], rows, t, world.spaces), rows, t)
        twin.step(to_legal(actions[t], again, t, world.spaces), again, t)
    if all(np.array_equal(rows[name], again[name], equal_nan=True) for name in rows):
        yield Finding("ok", "It continues exactly from get_state() and set_state().")
    else:
        yield Finding(
            "error",
            "It does not continue exactly from get_state() and set_state().",
            "Resumed runs would differ: get_state() does not return the whole state.",
        )
