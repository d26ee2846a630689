"""One run of a preset for a given number of steps, and its greedy returns at the end.

    python -m benchmarks.zoo.our_run cartpole-ppo 100000 1 20       # preset, steps, seed, episodes

The engine is `local`, which is what `tianji train PRESET` uses: an actor and a learner in processes
of their own, with experience up to max_lag versions old. Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import tianji
from benchmarks.defaults.our_returns import episode_return
from benchmarks.defaults.tasks import FIRST_EVAL_SEED
from benchmarks.harness import OUR_PACKAGES, versions
from benchmarks.zoo.tasks import is_our_own
from tianji.api import Trained
from tianji.comparison.provenance import package_commit
from tianji.observe.callbacks.interface import RunHandle
from tianji.trained.evaluate import evaluate_run
from tianji.types import Episode


class Episodes(tianji.Callback):
    """Keeps the length and the return of every training episode."""

    def __init__(self) -> None:
        self.finished: list[tuple[int, float]] = []

    def on_episode(self, run: RunHandle, episode: Episode) -> None:
        self.finished.append((episode.length, episode.episode_return))


def main() -> None:
    preset, (steps, seed, num_episodes) = sys.argv[1], map(int, sys.argv[2:])
    episodes = Episodes()
    asked: dict[str, Any] = {
        "max_env_steps": steps,
        "seed": seed,
        "target_return": None,
        "plan": {"source": "rule"},
    }
    with tempfile.TemporaryDirectory(prefix="zoo-") as scratch:
        os.chdir(scratch)
        started = time.monotonic()
        with redirect_stdout(sys.stderr):
            trained = tianji.train(preset, callbacks=[episodes], **asked)
        wall_s = time.monotonic() - started
        summary = trained.summary
        returns = greedy_returns(trained, num_episodes)
        os.chdir("/")
    print(
        json.dumps(
            {
                "returns": returns,
                "episodes": episodes.finished,
                "trained_steps": summary["env_steps"],
                "wall_s": wall_s,
                "training_s": summary["wall_s"],
                "lag_versions": summary["lag_versions"],
                "commit": package_commit(),
                "versions": versions((*OUR_PACKAGES, "mujoco", "box2d")),
            }
        )
    )


def greedy_returns(trained: Trained, num_episodes: int) -> list[float]:
    """Return what the policy of the end collects. On environments that the peer may have, episodes
    begin like its episodes: what Pendulum can give depends on the start."""
    run_dir, env = Path(trained.summary["run_dir"]), trained.summary["env"]
    if not num_episodes:
        return []
    if is_our_own(env):
        played = evaluate_run(run_dir, num_episodes, FIRST_EVAL_SEED, checkpoint="latest")
        return list(played["returns"])
    seeds = range(FIRST_EVAL_SEED, FIRST_EVAL_SEED + num_episodes)
    return [episode_return(trained.policy, env, seed) for seed in seeds]


if __name__ == "__main__":
    main()
