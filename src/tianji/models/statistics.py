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

from tianji.channels.peers.interface import Peers
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

    @classmethod
    def of(cls, values_BF: Array) -> RunningMoments:
        """Return the moments of a batch alone."""
        if not len(values_BF):
            return cls.zeros(values_BF.shape[1])
        values_BF = values_BF.astype(np.float64)
        mean_F = values_BF.mean(0)
        return cls(len(values_BF), mean_F, np.square(values_BF - mean_F).sum(0))

    def update(self, values_BF: Array) -> None:
        """Count a batch; an empty one changes nothing."""
        self.merge(RunningMoments.of(values_BF))

    def merge(self, other: RunningMoments) -> None:
        """Count all values that the other has counted."""
        if not other.count:
            return
        delta_F = other.mean_F - self.mean_F
        total = self.count + other.count
        self.mean_F = self.mean_F + delta_F * (other.count / total)
        self.m2_F = self.m2_F + other.m2_F + np.square(delta_F) * (self.count * other.count / total)
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


def merged(peers: Peers, parts: Sequence[RunningMoments]) -> list[RunningMoments]:
    """Return the moments of what all ranks have counted, each in two sums over the ranks:

    n = sum(count_i),  mean = sum(count_i * mean_i) / n
    m2 = sum(m2_i + count_i * (mean_i - mean)^2)
    """
    if not parts:
        return []
    borders = np.cumsum([len(part.mean_F) for part in parts])[:-1]
    count_F = np.concatenate([np.full(len(part.mean_F), float(part.count)) for part in parts])
    mine_F = np.concatenate([part.mean_F for part in parts])
    sums_2F = torch.from_numpy(np.stack([count_F, count_F * mine_F]))
    peers.add(sums_2F)
    total_F, weighted_F = sums_2F.numpy()
    mean_F = weighted_F / np.maximum(total_F, 1.0)
    m2_F = np.concatenate([part.m2_F for part in parts])
    m2_F += count_F * np.square(mine_F - mean_F)
    peers.add(torch.from_numpy(m2_F))
    split = (np.split(x_F, borders) for x_F in (total_F, mean_F, m2_F))
    return [RunningMoments(float(n[0]), mean, m2) for n, mean, m2 in zip(*split, strict=True)]


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
        if self.is_used:
            self.merge(self.moments_of(obs))

    def moments_of(self, obs: Tensors) -> RunningMoments:
        """Return the moments of these rows alone, all of them valid."""
        assert self._encoder is not None
        if not len(next(iter(obs.values()))):
            return RunningMoments.zeros(len(self._moments.mean_F))
        return RunningMoments.of(self._encoder.numbers(obs).numpy(force=True))

    def merge(self, moments: RunningMoments) -> None:
        """Count rows by their moments, and let the module use the new statistics."""
        assert self._normalizer is not None
        self._moments.merge(moments)
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
        self._count(self._moments, reward_TN, done_TN, valid_TN, stamps)
        return self.scaled(reward_TN, valid_TN)

    def moments_of(
        self, reward_TN: Floats, done_TN: Bools, valid_TN: Bools, stamps: Sequence[Stamp]
    ) -> RunningMoments:
        """Return the moments of a batch alone, as scale() would count them."""
        moments = RunningMoments.zeros(1)
        self._count(moments, reward_TN, done_TN, valid_TN, stamps)
        return moments

    def merge(self, moments: RunningMoments) -> None:
        """Count returns by their moments."""
        self._moments.merge(moments)

    def _count(
        self,
        moments: RunningMoments,
        reward_TN: Floats,
        done_TN: Bools,
        valid_TN: Bools,
        stamps: Sequence[Stamp],
    ) -> None:
        num_envs, rest = divmod(reward_TN.shape[1], len(stamps))
        assert not rest, "every actor steps the same number of environments"
        returns_TN = np.empty(reward_TN.shape)
        for begin, end in _runs_of_different([stamp.actor for stamp in stamps]):
            part = np.s_[:, begin * num_envs : end * num_envs]
            actors = [stamp.actor for stamp in stamps[begin:end]]
            returns_TN[part] = self._follow(actors, reward_TN[part], done_TN[part], valid_TN[part])
        for i in range(len(stamps)):
            part = np.s_[:, i * num_envs : (i + 1) * num_envs]
            moments.update(returns_TN[part][valid_TN[part]][:, None])

    def scaled(self, reward_TN: Floats, valid_TN: Bools) -> Floats:
        """Return these rewards divided by the present deviation; 0 in rows that are not valid."""
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
