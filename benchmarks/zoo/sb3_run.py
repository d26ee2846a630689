"""One run of Stable-Baselines3 with the tuned numbers of RL Zoo.

    python -m benchmarks.zoo.sb3_run ppo CartPole-v1 100000 1 20

The words are algorithm, environment, steps, seed and greedy episodes at the end.

Needs stable-baselines3 and nothing of TianJi. Prints one JSON object.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import metadata
from typing import Any

import torch
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from benchmarks.defaults.sb3_returns import FIRST_EVAL_SEED, episode_return
from benchmarks.zoo.rl_zoo import SETTINGS

PACKAGES = ("stable-baselines3", "torch", "gymnasium", "numpy", "mujoco", "box2d")


class Episodes(BaseCallback):
    """Keeps the length and the return of every training episode."""

    def __init__(self) -> None:
        super().__init__()
        self.finished: list[tuple[int, float]] = []

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info:
                self.finished.append((int(info["episode"]["l"]), float(info["episode"]["r"])))
        return True


def main() -> None:
    (algorithm, env_id), (steps, seed, num_episodes) = sys.argv[1:3], map(int, sys.argv[3:])
    settings = {key: _value(value) for key, value in SETTINGS[algorithm, env_id].items()}
    started = time.monotonic()
    env: Any = make_vec_env(env_id, settings.pop("n_envs", 1), seed=seed)
    if settings.pop("normalize", False):
        env = VecNormalize(env, gamma=settings.get("gamma", 0.99))
    kind = {"ppo": PPO, "dqn": DQN, "sac": SAC}[algorithm]
    model = kind("MlpPolicy", env, seed=seed, device="cpu", **settings)
    episodes = Episodes()
    made = time.monotonic()
    model.learn(steps, callback=episodes)
    ended = time.monotonic()
    player = OnRawObservations(model, env)
    returns = [episode_return(player, env_id, FIRST_EVAL_SEED + i) for i in range(num_episodes)]
    print(
        json.dumps(
            {
                "returns": returns,
                "episodes": episodes.finished,
                "trained_steps": model.num_timesteps,
                "wall_s": ended - started,
                "training_s": ended - made,
                "versions": {name: metadata.version(name) for name in PACKAGES},
            }
        )
    )


def _value(written: Any) -> Any:
    """Turn what RL Zoo writes as text into what Stable-Baselines3 takes."""
    if isinstance(written, str) and written.startswith("lin_"):
        return _falling(float(written.removeprefix("lin_")))
    if isinstance(written, dict):
        return {
            key: getattr(torch.nn, v) if key == "activation_fn" else v for key, v in written.items()
        }
    return written


def _falling(start: float) -> Callable[[float], float]:
    return lambda rest: rest * start


class OnRawObservations:
    """A model that is given observations as the environment gives them."""

    def __init__(self, model: Any, trained_on: Any) -> None:
        self._model = model
        self._trained_on = trained_on

    def predict(self, observation: Any, deterministic: bool) -> Any:
        if isinstance(self._trained_on, VecNormalize):
            observation = self._trained_on.normalize_obs(observation)
        return self._model.predict(observation, deterministic=deterministic)


if __name__ == "__main__":
    main()
