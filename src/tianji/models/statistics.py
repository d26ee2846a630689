"""Running statistics of observations and rewards, which only the learner counts.

What the policy needs of them (float32 mean and inverse deviation) is part of the published module;
what the learner needs to go on counting (float64 moments) is part of the update's state.

T: time, N: environments side by side, B: values of a batch, F: features of one value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tianji.models.networks.encoder import EPSILON
from tianji.models.networks.stacked import StackedNet
from tianji.models.tensors import Tensors
from tianji.ops.returns import Bools, Floats
from tianji.types import Array, Stamp

Doubles = NDArray[np.float64]


@dataclass
class RunningMoments:
    """Count, mean and sum of squared deviations of every value seen, in float64.

        delta = mean_b - mean,  n = count + count_b
        mean <- mean + delta * count_b / n
        m2   <- m2 + m2_b + delta^2 * count * count_b / n

    >>> RunningMoments.zeros(4)
    """

    count: float
    mean_F: Doubles
    m2_F: Doubles

    @classmethod
    def zeros(cls, num_features: int) -> RunningMoments:
        return cls(0.0, np.zeros(num_features), np.zeros(num_features))

    def update(self, values_BF: Array) -> None:
        """Count a batch; an empty one changes nothing."""
        num_values = len(values_BF)
        if not num_values:
            return
        values_BF = values_BF.astype(np.float64)
        mean_F = values_BF.mean(0)
        delta_F = mean_F - self.mean_F
        total = self.count + num_values
        self.mean_F = self.mean_F + delta_F * (num_values / total)
        self.m2_F = (
            self.m2_F
            + np.square(values_BF - mean_F).sum(0)
            + np.square(delta_F) * (self.count * num_values / total)
        )
        self.count = total

    def take_mean(self, everybody: Sequence[RunningMoments]) -> None:
        """Become the mean of G moments, of which these may be one: as if each value of any of them
        had been counted here with weight 1 / G.

            n = sum(count_i),  mean <- sum(count_i * mean_i) / n
            m2 <- sum(m2_i + count_i * (mean_i - mean)^2) / G,  count <- n / G
        """
        total = sum(moments.count for moments in everybody)
        if not total:
            return
        mean_F = np.zeros_like(self.mean_F)
        for moments in everybody:
            mean_F += moments.mean_F * (moments.count / total)
        m2_F = np.zeros_like(self.m2_F)
        for moments in everybody:
            m2_F += moments.m2_F + moments.count * np.square(moments.mean_F - mean_F)
        self.count = total / len(everybody)
        self.mean_F, self.m2_F = mean_F, m2_F / len(everybody)

    @property
    def variance_F(self) -> Doubles:
        """Return the variance of the values (divided by the count); 1 before the first value."""
        if not self.count:
            return np.ones_like(self.mean_F)
        return self.m2_F / self.count


class Statistics(Protocol):
    """Running statistics whose moments groups mix (learner/combination.py)."""

    @property
    def moments(self) -> RunningMoments: ...

    def use_moments(self) -> None:
        """Use the moments, which somebody has changed."""
        ...


class ObservationStatistics:
    """The learner's side of a network's Normalizer; does nothing for networks without one."""

    def __init__(self, net: nn.Module) -> None:
        self._encoder = net.encoder if isinstance(net, StackedNet) else None
        self._normalizer = self._encoder.normalizer if self._encoder is not None else None
        self.is_used = self._normalizer is not None
        size = len(self._normalizer.mean_V) if self._normalizer is not None else 0
        self._moments = RunningMoments.zeros(size)

    def update(self, obs: Tensors) -> None:
        """Count these rows, all of them valid, and let the module use the new statistics."""
        if self._encoder is not None and self._normalizer is not None:
            self._moments.update(self._encoder.numbers(obs).numpy(force=True))
            self.use_moments()

    @property
    def moments(self) -> RunningMoments:
        return self._moments

    def use_moments(self) -> None:
        """Let the module use the moments, which somebody has changed."""
        if self._normalizer is not None:
            self._normalizer.load(self._moments.mean_F, self._moments.variance_F)

    def state(self) -> Tensors:
        return _moments_state(self._moments) if self.is_used else {}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Continue counting; the module's own buffers come with its state_dict."""
        if self.is_used:
            self._moments = _moments_from(state)


class RewardScale:
    """Divides rewards by the running deviation of the discounted return.

        G_t = r_t + gamma * G_t-1 (0 at the start of an episode),   r'_t = r_t / deviation(G)

    G is followed for every environment of every actor, over the borders of unrolls.
    """

    def __init__(self, gamma: float, clip: float) -> None:
        self._gamma = gamma
        self._clip = np.float32(clip)
        self._moments = RunningMoments.zeros(1)
        self._return_by_actor: dict[int, Array] = {}

    def scale(
        self, reward_TN: Floats, done_TN: Bools, valid_TN: Bools, stamps: Sequence[Stamp]
    ) -> Floats:
        """Count a batch of unrolls that lie side by side in the order of their stamps; scale it."""
        num_envs, rest = divmod(reward_TN.shape[1], len(stamps))
        assert not rest, "every actor steps the same number of environments"
        returns_TN = np.empty(reward_TN.shape)
        for begin, end in _runs_of_different([stamp.actor for stamp in stamps]):
            part = np.s_[:, begin * num_envs : end * num_envs]
            actors = [stamp.actor for stamp in stamps[begin:end]]
            returns_TN[part] = self._follow(actors, reward_TN[part], done_TN[part], valid_TN[part])
        for i in range(len(stamps)):
            part = np.s_[:, i * num_envs : (i + 1) * num_envs]
            self._moments.update(returns_TN[part][valid_TN[part]][:, None])
        scaled_TN = np.where(valid_TN, reward_TN, np.float32(0.0)) / self.deviation
        return np.clip(scaled_TN, -self._clip, self._clip)

    @property
    def moments(self) -> RunningMoments:
        return self._moments

    def use_moments(self) -> None:
        """The next batch uses the moments as they are."""

    @property
    def deviation(self) -> np.float32:
        """Return the deviation of the discounted returns so far, which rewards are divided by."""
        return np.float32(np.sqrt(self._moments.variance_F[0] + EPSILON))

    def _follow(
        self, actors: Sequence[int], reward_TN: Array, done_TN: Array, valid_TN: Array
    ) -> Array:
        """Return G of every step of the unrolls of these actors, which lie side by side; steps that
        are not valid leave it as it was."""
        num_envs = reward_TN.shape[1] // len(actors)
        current_N = np.zeros(reward_TN.shape[1])
        for i, actor in enumerate(actors):
            known_N = self._return_by_actor.get(actor, np.empty(0))
            if len(known_N) == num_envs:  # else a new actor, or a resume with other shares
                current_N[i * num_envs : (i + 1) * num_envs] = known_N
        returns_TN = np.empty(reward_TN.shape)
        for t in range(len(reward_TN)):
            returns_TN[t] = np.where(valid_TN[t], self._gamma * current_N + reward_TN[t], current_N)
            current_N = np.where(valid_TN[t] & done_TN[t], 0.0, returns_TN[t])
        for actor, known_N in zip(actors, np.split(current_N, len(actors)), strict=True):
            self._return_by_actor[actor] = known_N
        return returns_TN

    def state(self) -> Tensors:
        returns = {
            f"returns.{actor}": torch.from_numpy(returns_N.copy())
            for actor, returns_N in self._return_by_actor.items()
        }
        return _moments_state(self._moments) | returns

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self._moments = _moments_from(state)
        self._return_by_actor = {
            int(key.removeprefix("returns.")): tensor.numpy().copy()
            for key, tensor in state.items()
            if key.startswith("returns.")
        }


def _runs_of_different(actors: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the bounds of consecutive parts in which no actor comes twice."""
    begin = 0
    for i in range(1, len(actors) + 1):
        if i == len(actors) or actors[i] in actors[begin:i]:
            yield begin, i
            begin = i


def _moments_state(moments: RunningMoments) -> Tensors:
    return {
        "count": torch.tensor(moments.count, dtype=torch.float64),
        "mean": torch.from_numpy(moments.mean_F.copy()),
        "m2": torch.from_numpy(moments.m2_F.copy()),
    }


def _moments_from(state: Mapping[str, Tensor]) -> RunningMoments:
    return RunningMoments(
        float(state["count"]), state["mean"].numpy().copy(), state["m2"].numpy().copy()
    )
