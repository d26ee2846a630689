"""Videos of episodes."""

from __future__ import annotations

import importlib
import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from tianji.envs.build import EnvSource, build_world, make_rows
from tianji.envs.interface import World
from tianji.errors import UsageError
from tianji.evaluator.play import Act, play
from tianji.types import Array

DEFAULT_FPS = 30
INSTALL = "Install what it needs with: pip install 'tianji[video]'"


def import_ffmpeg() -> Any:
    """Return the extra package, or say how to install it; called before any work is done."""
    try:
        return importlib.import_module("imageio_ffmpeg")
    except ImportError as error:
        raise UsageError(f"A video cannot be written: {error}. {INSTALL}") from error


def film_episode(
    act: Act,
    env: EnvSource,
    env_kwargs: Mapping[str, Any],
    seed: int,
    path: Path,
    cut_after_steps: int,
) -> int:
    """Write one episode as a video, cut where it does not end; returns the number of frames."""
    # Frames are read from memory: SDL, which draws many environments, needs no screen for it.
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    world = _build_visible(env, env_kwargs)
    try:
        frames = _frames(act, world, seed, cut_after_steps)
        first = next(frames)
        height, width = first.shape[:2]
        path.parent.mkdir(parents=True, exist_ok=True)
        # Codecs want even sizes; 2 changes as little as they allow.
        video = import_ffmpeg().write_frames(
            str(path), (width, height), fps=_fps(world), macro_block_size=2
        )
        video.send(None)
        count = 0
        for frame in itertools.chain([first], frames):
            video.send(np.ascontiguousarray(frame))
            count += 1
        video.close()
        return count
    except gym.error.DependencyNotInstalled as error:
        raise UsageError(f"The environment cannot be drawn: {error} {INSTALL}") from error
    finally:
        world.close()


def _build_visible(env: EnvSource, env_kwargs: Mapping[str, Any]) -> World:
    try:
        return build_world(env, {**env_kwargs, "render_mode": "rgb_array"}, 1)
    except UsageError as error:
        raise UsageError(
            f"{error} To be filmed, an environment must take render_mode='rgb_array'."
        ) from error


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


def _render(world: Any) -> Array:
    """Return the picture of the world's only environment."""
    picture = world.env.render() if hasattr(world, "env") else world.envs[0].render()
    frame = np.asarray(picture[0] if isinstance(picture, tuple | list) else picture)
    frame = frame[0] if frame.ndim == 4 else frame
    if frame.ndim != 3 or frame.shape[2] != 3:
        raise UsageError(
            f"The environment's render() gave an array of shape {frame.shape}; a video needs "
            "(height, width, 3)."
        )
    return frame.astype(np.uint8, copy=False)


def _fps(world: Any) -> int:
    metadata = (world.env if hasattr(world, "env") else world.envs[0]).metadata
    return int(metadata.get("render_fps") or DEFAULT_FPS)
