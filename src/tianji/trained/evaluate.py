"""Measuring a trained policy: whole episodes, greedy actions, mean and spread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tianji.envs.build import EnvSource, build_world
from tianji.trained.play import Played, play_episodes
from tianji.trained.policy import load_policy
from tianji.trained.video import film_episode, import_ffmpeg

MAX_ENVS = 16


def evaluate_run(
    run_dir: Path,
    episodes: int,
    seed: int,
    video: Path | None = None,
    checkpoint: str = "best",
    env: EnvSource | None = None,
) -> dict[str, Any]:
    """Play `episodes` episodes with a run's policy, and film one where a video is asked for."""
    if video is not None:
        import_ffmpeg()
    policy = load_policy(run_dir, checkpoint, env)
    source = env or policy.config.env
    world = build_world(source, policy.config.env_kwargs, min(episodes, MAX_ENVS))
    try:
        played = play_episodes(policy.greedy, world, episodes, seed)
    finally:
        world.close()
    report = {
        "checkpoint": policy.checkpoint.name,
        "version": policy.version,
        "note": policy.note,
        "seed": seed,
        **to_report(played),
        "video": None,
    }
    if video is not None:
        film_episode(policy.greedy, source, policy.config.env_kwargs, seed, video)
        report["video"] = str(video)
    return report


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
