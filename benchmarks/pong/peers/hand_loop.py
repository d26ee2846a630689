"""A hand-written PPO loop in CleanRL's style, on EnvPool's or ALE's own vector environment.

    .peers/bin/python -m benchmarks.pong.peers.hand_loop --seconds 60 --emulator envpool

It is the serial loop of this folder with the numbers of CleanRL's ppo_atari_envpool.py.
"""

from __future__ import annotations

from benchmarks.pong.peers.turn import Turn  # first: it notes when the process started

# isort: split
import math
from typing import Any

import numpy as np
import torch

from benchmarks.pong.emulator import NUM_ACTIONS, make_pong
from benchmarks.pong.ppo import PPO, Settings
from benchmarks.pong.serial_loop import Games, Progress, SerialLoop


class EnvPoolGames:
    """EnvPool's Pong with the interface of Gymnasium's vector environments."""

    def __init__(self, num_envs: int, num_threads: int, seed: int) -> None:
        import envpool

        self._pool = envpool.make_gymnasium(
            "Pong-v5",
            num_envs=num_envs,
            num_threads=num_threads,
            seed=seed,
            stack_num=4,
            frame_skip=4,
            reward_clip=False,
            episodic_life=False,
            repeat_action_probability=0.0,
        )

    def reset(self, *, seed: int | None = None) -> tuple[Any, Any]:
        """Reset; the seed was given when the pool was made."""
        frames, infos = self._pool.reset()
        return frames, infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Any]:
        frames, reward, terminated, truncated, infos = self._pool.step(actions.astype(np.int32))
        return frames, reward, terminated, truncated, infos


def main() -> None:
    turn = Turn(emulator=["envpool", "ale"])
    args = turn.args
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    games: Games
    if args.emulator == "envpool":
        games, package = EnvPoolGames(args.num_envs, args.threads, args.seed), "envpool"
    else:
        games, package = make_pong(args.num_envs, args.threads), "ale-py"
    settings = Settings(
        args.num_envs, args.num_steps, args.epochs, args.minibatch, learning_rate=2.5e-4
    )
    ppo = PPO(settings, NUM_ACTIONS, torch.device("cpu"))
    loop = SerialLoop(ppo, games, args.seed, Progress(), target=math.inf)
    turn.start()
    while not turn.is_over:
        loop.iterate()
        turn.mark(loop.progress.env_steps)
    turn.print_answer("CleanRL ppo_atari_envpool.py", package)


if __name__ == "__main__":
    main()
