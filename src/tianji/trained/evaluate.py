"""Evaluation of a trained policy: whole episodes, greedy or sampled actions, and a video of one."""

from __future__ import annotations

import importlib
import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from tianji.envs.build import EnvSources, build_world, make_rows, to_tasks
from tianji.envs.interface import World
from tianji.errors import UsageError
from tianji.evaluator.play import (
    Act,
    Played,
    combine,
    greedy,
    mean_returns,
    play,
    play_episodes,
    remembering,
)
from tianji.trained.policy import LoadedPolicy, load_policy
from tianji.types import Array
from tianji.wording import sentence

MAX_ENVS = 16


def evaluate_run(
    run_dir: Path,
    episodes: int,
    seed: int,
    video: Path | None = None,
    checkpoint: str = "best",
    env: EnvSources | None = None,
    *,
    stochastic: bool = False,
    cut_after_steps: int | None = None,
) -> dict[str, Any]:
    """Play `episodes` episodes of each environment with a run's policy; film one of the first
    environment if a video is asked for.

    stochastic: draw actions as in training; otherwise they are greedy.
    cut_after_steps: cut episodes that have not ended by then; evaluate.cut_after_steps of the run
        unless it is given.
    """
    if video is not None:
        import_ffmpeg()
    policy = load_policy(run_dir, checkpoint, env)
    config = policy.config
    tasks = to_tasks(config.tasks, env or config.envs or config.env)
    act, limit = _act(policy, stochastic, seed), cut_after_steps or config.evaluate.cut_after_steps
    build = partial(build_world, action_mask=policy.spaces.masked_by)
    played = {
        name: _play(
            act, build(source, config.env_kwargs, min(episodes, MAX_ENVS)), episodes, seed, limit
        )
        for name, source in tasks.items()
    }
    report = {
        "checkpoint": policy.checkpoint.name,
        "version": policy.version,
        "note": policy.note,
        "seed": seed,
        "stochastic": stochastic,
        "cut_after_steps": limit,
        **to_report(combine(played.values())),
        **({"returns_by_env": means} if (means := mean_returns(played)) else {}),
        "video": None,
    }
    if video is not None:
        source = next(iter(tasks.values()))
        world = _build_visible(partial(build, source), config.env_kwargs)
        film_episode(act, world, seed, video, limit)
        report["video"] = str(video)
    return report


def _act(policy: LoadedPolicy, stochastic: bool, seed: int) -> Act:
    """Return how the policy acts; the same seed gives the same draws."""
    if not stochastic:
        return greedy(policy.acting)
    rng = np.random.default_rng(seed)
    return remembering(policy.acting, lambda obs, state: policy.sample(obs, rng, state))


def _play(act: Act, world: World, episodes: int, seed: int, cut_after_steps: int) -> Played:
    try:
        return play_episodes(act, world, episodes, seed, cut_after_steps)
    finally:
        world.close()


def to_report(played: Played) -> dict[str, Any]:
    """Return figures about the episodes; `std` is the deviation between episodes."""
    returns, lengths = np.array(played.returns), np.array(played.lengths)
    return {
        "episodes": len(returns),
        "cut_episodes": played.num_cut,
        "mean": float(returns.mean()),
        "std": float(returns.std()),
        "min": float(returns.min()),
        "max": float(returns.max()),
        "median": float(np.median(returns)),
        "length": {
            "mean": float(lengths.mean()),
            "min": int(lengths.min()),
            "max": int(lengths.max()),
        },
        "returns": played.returns,
        "lengths": played.lengths,
    }


DEFAULT_FPS = 30
INSTALL = "Install what it needs with: pip install 'tianji[video]'"


def import_ffmpeg() -> Any:
    """Return the extra package, or say how to install it; called before any work is done."""
    try:
        return importlib.import_module("imageio_ffmpeg")
    except ImportError as error:
        raise UsageError(f"A video cannot be written: {error}. {INSTALL}") from error


def film_episode(act: Act, world: World, seed: int, path: Path, cut_after_steps: int) -> None:
    """Write one episode as a video, cut where it does not end."""
    try:
        frames = _frames(act, world, seed, cut_after_steps)
        first = next(frames)
        height, width = first.shape[:2]
        path.parent.mkdir(parents=True, exist_ok=True)
        # Codecs want even sizes; 2 changes as little as they allow.
        fps = int(_only_env(world).metadata.get("render_fps") or DEFAULT_FPS)
        size = (width, height)
        video = import_ffmpeg().write_frames(str(path), size, fps=fps, macro_block_size=2)
        video.send(None)
        for frame in itertools.chain([first], frames):
            video.send(np.ascontiguousarray(frame))
        video.close()
    except gym.error.DependencyNotInstalled as error:
        raise UsageError(
            f"The environment cannot be drawn: {sentence(str(error))} {INSTALL}"
        ) from error
    finally:
        world.close()


def _build_visible(build: Callable[..., World], env_kwargs: Mapping[str, Any]) -> World:
    # Frames are read from memory: SDL, which draws many environments, needs no screen for it.
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    try:
        world: World = build({**env_kwargs, "render_mode": "rgb_array"}, 1)
    except UsageError as error:
        raise UsageError(
            f"{sentence(str(error))} To be filmed, an environment must take "
            "render_mode='rgb_array'."
        ) from error
    return world


def _frames(act: Act, world: World, seed: int, cut_after_steps: int) -> Iterator[Array]:
    world.reset(seed, make_rows(world, 0))
    yield _render(world)
    for rows in itertools.islice(play(act, world, seed), cut_after_steps):
        ended = rows["terminated"][0, 0] or rows["truncated"][0, 0]
        # A world that resets in the same step already shows the next episode.
        if not (ended and world.keeps_final):
            yield _render(world)
        if ended:
            return


def _only_env(world: Any) -> Any:
    return world.env if hasattr(world, "env") else world.envs[0]


def _render(world: World) -> Array:
    """Return the picture of the world's only environment."""
    picture = _only_env(world).render()
    frame = np.asarray(picture[0] if isinstance(picture, tuple | list) else picture)
    frame = frame[0] if frame.ndim == 4 else frame
    if frame.ndim != 3 or frame.shape[2] != 3:
        raise UsageError(
            f"The environment's render() gave an array of shape {frame.shape}; a video needs "
            "(height, width, 3)."
        )
    return frame.astype(np.uint8, copy=False)
