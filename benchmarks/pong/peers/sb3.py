"""Stable-Baselines3 PPO on Pong with the Atari numbers of rl-zoo3.

.peers/bin/python -m benchmarks.pong.peers.sb3 --seconds 60 --workers subproc
"""

from __future__ import annotations

from benchmarks.pong.peers.turn import Turn  # first: it notes when the process started

# isort: split
from typing import Any

import gymnasium as gym
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecFrameStack


def make_game(**_: Any) -> gym.Env[Any, Any]:
    """Make Pong without frame skip or sticky actions: SB3's wrappers add the preprocessing."""
    import ale_py  # here, because worker processes must register the environments too

    gym.register_envs(ale_py)
    return gym.make("ALE/Pong-v5", frameskip=1, repeat_action_probability=0.0)


class _Marks(BaseCallback):
    def __init__(self, turn: Turn) -> None:
        super().__init__()
        self._turn = turn

    def _on_rollout_start(self) -> None:
        """Mark the end of the iteration before; the first rollout has none."""
        if self.num_timesteps:
            self._turn.mark(self.num_timesteps)

    def _on_step(self) -> bool:
        return not self._turn.is_over


def main() -> None:
    turn = Turn(workers=["dummy", "subproc"])
    args = turn.args
    torch.set_num_threads(args.threads)
    workers = {"dummy": DummyVecEnv, "subproc": SubprocVecEnv}[args.workers]
    envs = make_atari_env(make_game, n_envs=args.num_envs, seed=args.seed, vec_env_cls=workers)
    model = PPO(
        "CnnPolicy",
        VecFrameStack(envs, n_stack=4),
        n_steps=args.num_steps,
        batch_size=args.minibatch,
        n_epochs=args.epochs,
        learning_rate=2.5e-4,
        clip_range=0.1,
        ent_coef=0.01,
        vf_coef=0.5,
        seed=args.seed,
        device="cpu",
    )
    turn.start()
    model.learn(total_timesteps=10_000_000, callback=_Marks(turn))
    turn.print_answer("rl-zoo3 ppo atari", "stable-baselines3", "gymnasium", "ale-py")


if __name__ == "__main__":
    main()
