"""Evaluation of a trained policy: whole episodes, greedy or sampled actions, mean and spread."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tianji.envs.build import EnvSource, EnvSources, build_world, to_tasks
from tianji.evaluator.play import Act, Played, combine, mean_returns, play_episodes
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
    played = {
        name: _play(act, source, config.env_kwargs, episodes, seed, limit)
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
        film_episode(act, source, config.env_kwargs, seed, video, limit)
        report["video"] = str(video)
    return report


def _act(policy: LoadedPolicy, stochastic: bool, seed: int) -> Act:
    """Return how the policy acts; the same seed gives the same draws."""
    rng = np.random.default_rng(seed)
    return (lambda leaves: policy.sample(leaves, rng)) if stochastic else policy.greedy


def _play(
    act: Act,
    source: EnvSource,
    env_kwargs: Mapping[str, Any],
    episodes: int,
    seed: int,
    cut_after_steps: int,
) -> Played:
    world = build_world(source, env_kwargs, min(episodes, MAX_ENVS))
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
