"""The inline engine: every role in this process, in turn, the same bits every time.

python 05_inline_debugging.py

Breakpoints, print() and profilers work as in any other script, and an exception in an environment
comes out here with its own traceback. Nothing else changes: the same roles run in the processes of
the local engine.
"""

from __future__ import annotations

import sys

import gymnasium as gym
import torch

import tianji


class Broken(gym.Wrapper):
    """CartPole that fails when an episode has lasted 20 steps: put a breakpoint() there."""

    def __init__(self) -> None:
        super().__init__(gym.make("CartPole-v1"))
        self.steps = 0

    def reset(self, **keywords):
        self.steps = 0
        return self.env.reset(**keywords)

    def step(self, action):
        self.steps += 1
        if self.steps == 20:
            raise RuntimeError(f"step {self.steps}, action {action}")
        return self.env.step(action)


def weights(seed: int, max_env_steps: int) -> list[torch.Tensor]:
    settings = {"engine": "inline", "display": "off", "target_return": None}
    trained = tianji.train("cartpole-ppo", seed=seed, max_env_steps=max_env_steps, **settings)
    return list(trained.policy.model.state_dict().values())


if __name__ == "__main__":
    max_env_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    once, again, other = (weights(seed, max_env_steps) for seed in (1, 1, 2))
    same = all(map(torch.equal, once, again))
    print(f"seed 1 twice: {'equal, bit for bit' if same else 'DIFFERENT'}")
    print(f"seed 2: {'equal' if all(map(torch.equal, once, other)) else 'another policy'}")

    try:
        tianji.train(env=Broken, engine="inline", display="off", max_env_steps=max_env_steps)
    except RuntimeError as error:
        print(f"the environment's own exception: {error}")
