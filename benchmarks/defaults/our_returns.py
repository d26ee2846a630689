"""One run of TianJi with its defaults: nothing but the environment and the length, and the
algorithm unless that is `auto`.

    python -m benchmarks.defaults.our_returns auto CartPole-v1 100000 1 [--key value ...]

Further settings are for trying other values; a result with settings is not a result of the
defaults. Prints one JSON object, with the greedy returns of the policy as it is at the end.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import tianji
from benchmarks.defaults.tasks import EPISODES, FIRST_EVAL_SEED
from benchmarks.harness import OUR_PACKAGES, commit, run_json, tianji_command, versions
from tianji.config.files import load_config
from tianji.config.schema import AUTO
from tianji.run_folder.paths import CONFIG_FILE


def main() -> None:
    algorithm, env_id, steps, seed, *settings = sys.argv[1:]
    named = [] if algorithm == AUTO else ["--algorithm", algorithm]
    asked = ["--env", env_id, *named, "--max-env-steps", steps, "--seed", seed]
    with tempfile.TemporaryDirectory(prefix="defaults-") as scratch:
        os.chdir(scratch)
        command = tianji_command("train", *asked, *settings, "--json")
        summary = run_json(command, timeout_s=3600, cwd=Path(scratch))
        policy = tianji.load(summary["run_dir"], "latest")
        chosen = load_config(Path(summary["run_dir"]) / CONFIG_FILE).algorithm
        returns = [episode_return(policy, env_id, FIRST_EVAL_SEED + i) for i in range(EPISODES)]
    print(
        json.dumps(
            {
                "mean_return": float(np.mean(returns)),
                "returns": returns,
                "mean_return_100": summary["mean_return_100"],
                "trained_steps": summary["env_steps"],
                "wall_s": summary["wall_s"],
                "lag_versions": summary["lag_versions"],
                "engine": summary["engine"],
                "chosen": chosen.model_dump(mode="json"),
                "settings": settings,
                "commit": commit(),
                "versions": versions((*OUR_PACKAGES, "mujoco", "box2d")),
            }
        )
    )


def episode_return(policy: Any, env_id: str, seed: int) -> float:
    env = gym.make(env_id)
    observation, _ = env.reset(seed=seed)
    total, ended = 0.0, False
    while not ended:
        observation, reward, terminated, truncated, _ = env.step(policy.act(observation))
        total, ended = total + float(reward), terminated or truncated
    env.close()
    return total


if __name__ == "__main__":
    main()
