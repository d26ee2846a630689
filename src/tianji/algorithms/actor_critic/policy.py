"""The actor's side of PPO and IMPALA: it evaluates only the policy, the learner computes values.
Algorithms without values act in the same way.

Actions are drawn with NumPy: noise once for an unroll, then two calls a step.

    sampler.begin(rng, num_rows, num_envs)
    for t in ...:
        network(obs, sampler.outputs_RNA[t])          # writes the outputs of row t
        world.step(sampler.sample(t, unroll["action"][t]))
    sampler.log_prob(unroll["action"], unroll["log_prob"], rows)

sample() stores the actions as they are drawn and returns them as the world takes them.

R: rows of an unroll, N: environments, A: outputs, K: choices of one action, M: options of a choice.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from torch import Tensor, nn

from tianji.algorithms.accelerators.inference import (
    Network,
    RowActing,
    build_inference,
    evaluate,
)
from tianji.algorithms.actor_critic.memory import MemoryRows, MemoryStep
from tianji.algorithms.actor_critic.model import POLICY, VALUE, ActorCritic, StochasticPolicy
from tianji.algorithms.actor_critic.preprocessor import reward_deviation
from tianji.algorithms.actor_critic.settings import ActorCriticConfig
from tianji.algorithms.interface import ValueFunction
from tianji.config.run import RunConfig
from tianji.envs.frames import ObservationReader
from tianji.envs.interface import Spaces
from tianji.models.actions import Choices, Continuous, Squashed
from tianji.models.heads import SMALLEST_SPREAD, CategoricalHead, GaussianHead, Head, SquashedHead
from tianji.models.networks.recurrent import RecurrentNet
from tianji.ops.noise import colored_noise
from tianji.ops.returns import Floats
from tianji.types import Array, Unroll

TINY = np.finfo(np.float32).tiny


class _Sampler:
    """Draws the actions of one actor; the network writes to `outputs_RNA`."""

    def __init__(self, layout: Choices | Continuous) -> None:
        self._shape = layout.shape
        self._num_outputs = layout.num_outputs
        self.outputs_RNA: Floats = np.empty((0, 0, 0), np.float32)

    def _make_room(self, num_rows: int, num_envs: int) -> tuple[int, int, int]:
        """Make room for the outputs of an unroll; return their shape."""
        shape = (num_rows, num_envs, self._num_outputs)
        if self.outputs_RNA.shape != shape:
            self.outputs_RNA = np.empty(shape, np.float32)
        return shape


class CategoricalSampler(_Sampler):
    """Gumbel-max: argmax(logits + gumbel noise) is a draw from the softmax, for each choice."""

    def __init__(self, layout: Choices) -> None:
        super().__init__(layout)
        ends = itertools.accumulate(layout.sizes)
        self._parts = [slice(end - size, end) for end, size in zip(ends, layout.sizes, strict=True)]
        self._noise_RNA = self.outputs_RNA
        self._noisy_NA = np.empty((0, 0), np.float32)

    def begin(self, rng: np.random.Generator, num_rows: int, num_envs: int) -> None:
        shape = self._make_room(num_rows, num_envs)
        if len(self._noisy_NA) != num_envs:
            self._noisy_NA = np.empty(shape[1:], np.float32)
        # Gumbel noise is -log of an exponential draw, which must not be 0.
        noise_RNA = rng.standard_exponential(shape, np.float32)
        np.log(np.maximum(noise_RNA, TINY, out=noise_RNA), out=noise_RNA)
        self._noise_RNA = np.negative(noise_RNA, out=noise_RNA)

    def sample(self, t: int, action: Array) -> Array:
        np.add(self.outputs_RNA[t], self._noise_RNA[t], out=self._noisy_NA)
        self._argmax(self._noisy_NA, action)
        return action

    def log_prob(self, action: Array, log_prob_RN: Array, rows: slice) -> None:
        outputs_RNA = self.outputs_RNA[rows]
        action_RNK = action[rows].reshape(*outputs_RNA.shape[:2], -1)
        total_RN = np.zeros(outputs_RNA.shape[:2], np.float32)
        for k, part in enumerate(self._parts):
            logits_RNM = outputs_RNA[..., part]
            logits_RNM = logits_RNM - logits_RNM.max(2, keepdims=True)
            chosen_RN1 = np.take_along_axis(logits_RNM, action_RNK[..., k : k + 1], 2)
            total_RN += chosen_RN1[..., 0] - np.log(np.exp(logits_RNM).sum(2))
        log_prob_RN[rows] = total_RN

    def mode(self, outputs_NA: Floats) -> Array:
        action = np.empty((len(outputs_NA), *self._shape), np.int64)
        self._argmax(outputs_NA, action)
        return action

    def _argmax(self, scores_NA: Floats, action: Array) -> None:
        if action.ndim == 1:
            scores_NA.argmax(1, action)
            return
        action_NK = action.reshape(len(action), -1)
        for k, part in enumerate(self._parts):
            action_NK[:, k] = scores_NA[:, part].argmax(1)


class GaussianSampler(_Sampler):
    """mean + deviation * normal noise; stored as drawn, cut to the bounds for the world.

    Log-probabilities are those of each action alone, whatever the colour of the noise.
    """

    def __init__(self, head: GaussianHead, noise_color: float) -> None:
        layout = head.layout
        super().__init__(layout)
        self._head = head
        self._noise_color = noise_color
        is_bounded = bool(np.isfinite(layout.low).any() or np.isfinite(layout.high).any())
        self._bounds = (layout.low, layout.high) if is_bounded else None
        self._noise_RNA = self.outputs_RNA
        self._scaled_RNA = self.outputs_RNA
        self._log_std_A: Floats = np.empty(0, np.float32)

    def begin(self, rng: np.random.Generator, num_rows: int, num_envs: int) -> None:
        shape = self._make_room(num_rows, num_envs)
        self._log_std_A = self._head.log_std_A.numpy(force=True).copy()
        self._noise_RNA = colored_noise(rng, shape, self._noise_color)
        self._scaled_RNA = self._noise_RNA * np.exp(self._log_std_A)

    def sample(self, t: int, action: Array) -> Array:
        action_NA = action.reshape(len(action), -1)
        np.add(self.outputs_RNA[t], self._scaled_RNA[t], out=action_NA)
        return self._cut(action_NA) if self._bounds is not None else action

    def log_prob(self, action: Array, log_prob_RN: Array, rows: slice) -> None:
        constant = self._log_std_A.sum() + 0.5 * math.log(2.0 * math.pi) * len(self._log_std_A)
        squares_RN = np.square(self._noise_RNA[rows]).sum(2)
        log_prob_RN[rows] = np.float32(-0.5) * squares_RN - np.float32(constant)

    def mode(self, outputs_NA: Floats) -> Array:
        return self._cut(outputs_NA)

    def _cut(self, action_NA: Array) -> Array:
        if self._bounds is not None:
            action_NA = np.clip(action_NA, *self._bounds)
        return action_NA.reshape(-1, *self._shape)


class SquashedSampler(_Sampler):
    """mean + deviation * normal noise; stored as drawn, squashed into the bounds for the world."""

    def __init__(self, layout: Squashed) -> None:
        super().__init__(layout)
        self._num_numbers = layout.num_numbers
        self._middle_K, self._half_K = layout.middle, layout.half
        self._noise_RNK = self.outputs_RNA
        self._deviation_NK = np.empty((0, 0), np.float32)

    def begin(self, rng: np.random.Generator, num_rows: int, num_envs: int) -> None:
        self._make_room(num_rows, num_envs)
        if len(self._deviation_NK) != num_envs:
            self._deviation_NK = np.empty((num_envs, self._num_numbers), np.float32)
        self._noise_RNK = rng.standard_normal((num_rows, num_envs, self._num_numbers), np.float32)

    def sample(self, t: int, action: Array) -> Array:
        outputs_NA, deviation_NK = self.outputs_RNA[t], self._deviation_NK
        action_NK = action.reshape(len(action), -1)
        _softplus(outputs_NA[:, self._num_numbers :], deviation_NK)
        np.multiply(deviation_NK, self._noise_RNK[t], out=action_NK)
        np.add(action_NK, outputs_NA[:, : self._num_numbers], out=action_NK)
        return self._squash(action_NK)

    def log_prob(self, action: Array, log_prob_RN: Array, rows: slice) -> None:
        spread_RNK = self.outputs_RNA[rows, :, self._num_numbers :]
        deviation_RNK = _softplus(spread_RNK, np.empty_like(spread_RNK))
        constant = 0.5 * math.log(2.0 * math.pi) * self._num_numbers
        exponent_RNK = np.float32(0.5) * np.square(self._noise_RNK[rows]) + np.log(deviation_RNK)
        log_prob_RN[rows] = -exponent_RNK.sum(2) - np.float32(constant)

    def mode(self, outputs_NA: Floats) -> Array:
        return self._squash(outputs_NA[:, : self._num_numbers])

    def _squash(self, u_NK: Array) -> Array:
        action_NK = np.tanh(u_NK)
        np.multiply(action_NK, self._half_K, out=action_NK)
        np.add(action_NK, self._middle_K, out=action_NK)
        return action_NK.reshape(-1, *self._shape)


def _softplus(spread: Array, out: Array) -> Array:
    """Return log(1 + exp(x)), with x at least the smallest spread."""
    np.maximum(spread, np.float32(SMALLEST_SPREAD), out=out)
    result: Array = np.logaddexp(out, np.float32(0.0), out=out)
    return result


Sampler: TypeAlias = CategoricalSampler | GaussianSampler | SquashedSampler


def build_sampler(head: Head, noise_color: float = 0.0) -> Sampler:
    """noise_color: see ops/noise.py; only actions of a Gaussian without squashing have it."""
    if isinstance(head, CategoricalHead):
        return CategoricalSampler(head.layout)
    if isinstance(head, SquashedHead):
        return SquashedSampler(head.layout)
    return GaussianSampler(head, noise_color)


class StochasticActing(RowActing):
    """Draws actions from the policy, the first output of a network; see algorithms/interface.py."""

    def __init__(self, model: StochasticPolicy, spaces: Spaces, config: RunConfig) -> None:
        model.eval()
        network = Network(model.net, POLICY, model.head.layout.num_outputs, model.mask)
        super().__init__(network, spaces.observation)
        self.state_size = 0
        self._step: MemoryStep | None = None
        if isinstance(model.net, RecurrentNet):
            self._step = MemoryStep(model.net, POLICY, model.mask)
            self.state_size = self._step.state_size
            self.rows = MemoryRows(self._step, spaces.observation)
        settings = config.algorithm
        color = settings.noise_color if isinstance(settings, ActorCriticConfig) else 0.0
        self._sampler = build_sampler(model.head, color)
        self.reads_parameters = isinstance(self._sampler, GaussianSampler)
        self._end_row = 0

    def begin(
        self, rng: np.random.Generator, unroll: Unroll, first_row: int, steps_before: int
    ) -> None:
        num_rows, num_envs = unroll["action"].shape[:2]
        self._sampler.begin(rng, num_rows, num_envs)
        self.rows.begin(unroll)
        self._end_row = first_row

    def submit(self, unroll: Unroll, t: int) -> None:
        self.rows.submit(unroll, t)
        self._end_row = t + 1

    def collect(self, unroll: Unroll, t: int) -> Array:
        self.rows.collect(self._sampler.outputs_RNA[t])
        return self._sampler.sample(t, unroll["action"][t])

    def act(self, unroll: Unroll, t: int) -> Array:
        self.submit(unroll, t)
        return self.collect(unroll, t)

    def finish(self, unroll: Unroll, first_row: int) -> None:
        """Fill log-probabilities, if the algorithm keeps them, up to the last row that was acted:
        an unroll may be handed over short."""
        self.rows.finish(unroll, self._end_row)
        if "log_prob" in unroll:
            rows = slice(first_row, self._end_row)
            self._sampler.log_prob(unroll["action"], unroll["log_prob"], rows)

    def greedy(self, obs: Mapping[str, Array], *state_NS: Array) -> Array:
        if self._step is None:
            return self._sampler.mode(self.evaluate(obs))
        (state,) = state_NS
        outputs_NA, state[:] = self._step(self._reader.batch(obs), state)
        return self._sampler.mode(outputs_NA)


def build_value(
    model: nn.Module, spaces: Spaces, config: RunConfig, state: Mapping[str, Tensor]
) -> ValueFunction:
    """Return the value network's function, in the scale of the environment's rewards."""
    assert isinstance(model, ActorCritic)
    reader, scale = ObservationReader(spaces.seen), reward_deviation(config, state)
    if isinstance(model.net, RecurrentNet):
        step = MemoryStep(model.net, VALUE)
        return lambda obs, state_NS: scale * step(reader.batch(obs), state_NS)[0][:, 0]
    inference = build_inference(model.net, VALUE)
    return lambda obs: scale * evaluate(inference, reader, obs, 1)[:, 0]
