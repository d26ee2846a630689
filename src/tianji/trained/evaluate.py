"""Measuring a trained policy: whole episodes, greedy actions, mean and spread."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tianji.envs.build import EnvSource, EnvSources, build_world, to_tasks
from tianji.trained.play import Played, play_episodes
from tianji.trained.policy import LoadedPolicy, load_policy
from tianji.trained.video import film_episode, import_ffmpeg

MAX_ENVS = 16


def evaluate_run(
    run_dir: Path,
    episodes: int,
    seed: int,
    video: Path | None = None,
    checkpoint: str = "best",
    env: EnvSources | None = None,
) -> dict[str, Any]:
    """Play `episodes` episodes of each environment with a run's policy, and film one of the first
    where a video is asked for."""
    if video is not None:
        import_ffmpeg()
    policy = load_policy(run_dir, checkpoint, env)
    config = policy.config
    tasks = to_tasks(config.tasks, env or config.envs or config.env)
    played = {name: _play(policy, source, episodes, seed) for name, source in tasks.items()}
    report = {
        "checkpoint": policy.checkpoint.name,
        "version": policy.version,
        "note": policy.note,
        "seed": seed,
        **to_report(_together(played.values())),
        **_by_env(played),
        "video": None,
    }
    if video is not None:
        source = next(iter(tasks.values()))
        film_episode(policy.greedy, source, config.env_kwargs, seed, video)
        report["video"] = str(video)
    return report


def _play(policy: LoadedPolicy, source: EnvSource, episodes: int, seed: int) -> Played:
    world = build_world(source, policy.config.env_kwargs, min(episodes, MAX_ENVS))
    try:
        return play_episodes(policy.greedy, world, episodes, seed)
    finally:
        world.close()


def _together(played: Iterable[Played]) -> Played:
    returns, lengths = zip(*played, strict=True)
    return Played(list(itertools.chain(*returns)), list(itertools.chain(*lengths)))


def _by_env(played: Mapping[str, Played]) -> dict[str, Any]:
    """Nothing where there is one."""
    means = {name: float(np.mean(one.returns)) for name, one in played.items()}
    return {"returns_by_env": means} if len(means) > 1 else {}


def to_report(played: Played) -> dict[str, Any]:
    """Figures about the episodes; `std` is the deviation between episodes."""
    returns, lengths = np.array(played.returns), np.array(played.lengths)
    return {
        "episodes": len(returns),
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
