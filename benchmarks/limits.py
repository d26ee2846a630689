"""What the machine allows: the bare work with nothing of ours (or anybody's) around it.

The benchmarks hold everybody against these. They run on one torch thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

CARTPOLE = "CartPole-v1"


def seconds_per_call(call: Callable[[], object], min_s: float) -> float:
    """Mean over as many calls as fill min_s, after a tenth of that as warm-up."""
    for span in (min_s / 10, min_s):
        calls, started = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - started) < span:
            call()
            calls += 1
    return elapsed / calls


def mlp(
    num_in: int, hidden: Sequence[int], num_out: int, activation: type[nn.Module] = nn.Tanh
) -> nn.Sequential:
    widths = [num_in, *hidden]
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), activation()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], num_out))


Forward = Callable[[NDArray[np.float32]], object]


def torch_forward(hidden: Sequence[int]) -> Forward:
    """A plain nn.Sequential, called under inference_mode."""
    net = mlp(4, hidden, 2)

    def forward(obs: NDArray[np.float32]) -> object:
        with torch.inference_mode():
            return net(torch.from_numpy(obs))

    return forward


def numpy_forward(hidden: Sequence[int]) -> Forward:
    """The same network as bare numpy products: for small networks most of torch's time is calls."""
    linears = [layer for layer in mlp(4, hidden, 2) if isinstance(layer, nn.Linear)]
    weights = [linear.weight.detach().numpy().T.copy() for linear in linears]
    biases = [linear.bias.detach().numpy() for linear in linears]

    def forward(obs: NDArray[np.float32]) -> object:
        x = obs
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            x = x @ weight
            x += bias
            np.tanh(x, x)
        return x @ weights[-1] + biases[-1]

    return forward


class BareActor:
    """Vector CartPole stepped with actions drawn beforehand, plus one forward pass each step.

    No sampling, no log-probabilities, nothing is kept. Random actions end episodes as often as a
    fresh policy does, so that the resets cost the same.
    """

    def __init__(self, num_envs: int, forward: Forward, seed: int = 1) -> None:
        self._envs = gym.make_vec(CARTPOLE, num_envs, vectorization_mode="vector_entry_point")
        self._obs, _ = self._envs.reset(seed=seed)
        self._forward = forward
        self._actions = np.random.default_rng(seed).integers(0, 2, (1024, num_envs))
        self._num_envs = num_envs

    def run(self, num_steps: int) -> int:
        """Step every environment num_steps times; returns the environment steps."""
        envs, forward, actions, obs = self._envs, self._forward, self._actions, self._obs
        for t in range(num_steps):
            forward(obs)
            obs = envs.step(actions[t % len(actions)])[0]
        self._obs = obs
        return num_steps * self._num_envs


def bare_actor_steps_per_s(num_envs: int, hidden: Sequence[int], min_s: float = 1.0) -> float:
    """The fastest we know how to step and infer."""
    actor = BareActor(num_envs, numpy_forward(hidden))
    return num_envs * 32 / seconds_per_call(lambda: actor.run(32), min_s)


class BareUpdate:
    """The matrix products of one update and nothing else: per network and layer one product
    forward, and backward one for the weights and (above the first layer) one for the inputs."""

    def __init__(self, batch: int, shapes: Sequence[Sequence[int]]) -> None:
        self._products: list[tuple[Tensor, Tensor, Tensor]] = []
        for widths in shapes:
            for index, (num_in, num_out) in enumerate(pairwise(widths)):
                inputs, outputs = torch.randn(batch, num_in), torch.randn(batch, num_out)
                weights = torch.randn(num_in, num_out)
                self._add(inputs, weights)
                self._add(inputs.t(), outputs)
                if index > 0:
                    self._add(outputs, weights.t())

    def _add(self, left: Tensor, right: Tensor) -> None:
        self._products.append((left, right, torch.empty(left.shape[0], right.shape[1])))

    def run(self) -> None:
        for left, right, out in self._products:
            torch.mm(left, right, out=out)


def bare_update_s(batch: int, shapes: Sequence[Sequence[int]], min_s: float = 0.5) -> float:
    """Seconds of arithmetic in one update of networks with these layer widths."""
    return seconds_per_call(BareUpdate(batch, shapes).run, min_s)
