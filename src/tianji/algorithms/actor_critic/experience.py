"""A batch of unrolls as PPO and IMPALA take it in: checked, normalised, ready for the network.

T: time, N: environments side by side, R: T * N steps, K: choices or numbers of one action.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from tianji.algorithms.actor_critic.model import ActorCritic
from tianji.envs.interface import Spaces
from tianji.envs.spaces import observation_leaves
from tianji.models.gradient import GradientNet
from tianji.models.normalize import ObservationStatistics, RewardScale
from tianji.models.stacked import StackedNet
from tianji.models.tensors import add_prefix, to_tensor, with_prefix
from tianji.ops.gae import Bools, Floats
from tianji.types import FINAL_OBS, OBS, Array, Batch, leaf_name

if TYPE_CHECKING:
    from tianji.config.run import RunConfig


@dataclass(frozen=True)
class Experience:
    """Arrays [T, N, ...]; what is not valid is 0 in all but the observations."""

    obs: Mapping[str, Array]
    """[T + 1, N, ...] by leaf key; rows that no valid step touches may hold anything."""
    final_obs: Mapping[str, Array]
    """[T, N, ...] by leaf key, empty where obs[t + 1] is the true next observation."""
    action: Array
    log_prob_TN: Floats
    reward_TN: Floats
    terminated_TN: Bools
    truncated_TN: Bools
    valid_TN: Bools

    def envs(self, part: slice) -> Experience:
        """Some of the environments, over all steps."""
        return Experience(
            {key: array[:, part] for key, array in self.obs.items()},
            {key: array[:, part] for key, array in self.final_obs.items()},
            self.action[:, part],
            self.log_prob_TN[:, part],
            self.reward_TN[:, part],
            self.terminated_TN[:, part],
            self.truncated_TN[:, part],
            self.valid_TN[:, part],
        )

    def obs_rows(self) -> dict[str, Tensor]:
        """All observations [(T + 1) * N, ...], the last N only to bootstrap from."""
        return {
            key: to_tensor(array.reshape(-1, *array.shape[2:])) for key, array in self.obs.items()
        }

    def action_RK(self) -> Tensor:
        return torch.from_numpy(self.action.reshape(self.valid_TN.size, -1))

    def valid_rows(self) -> slice | Tensor:
        """Where the valid steps are among all rows, to index with."""
        if self.valid_TN.all():
            return slice(self.valid_TN.size)
        return torch.from_numpy(np.flatnonzero(self.valid_TN))

    def next_value(self, network: GradientNet, value_T1N: Floats) -> Floats:
        """Value of what each step led to; with final observations apart, those of cut episodes."""
        next_value_TN = value_T1N[1:].copy()
        cut_TN = self.truncated_TN & self.valid_TN
        if self.final_obs and cut_TN.any():
            final = {key: to_tensor(array[cut_TN]) for key, array in self.final_obs.items()}
            _, value_1C = network.evaluate(network.prepare(final))
            next_value_TN[cut_TN] = value_1C[0].numpy(force=True)
        return next_value_TN


class Intake:
    """Turns batches into Experience, and keeps the running statistics."""

    def __init__(self, model: ActorCritic, spaces: Spaces, config: RunConfig) -> None:
        self._keys = [leaf.key for leaf in observation_leaves(spaces.observation)]
        self._encoder = model.net.encoder if isinstance(model.net, StackedNet) else None
        self._statistics: ObservationStatistics | None = None
        if self._encoder is not None and self._encoder.normalizer is not None:
            self._statistics = ObservationStatistics(self._encoder.normalizer)
        self._reward_scale: RewardScale | None = None
        if config.normalize.rewards:
            self._reward_scale = RewardScale(config.algorithm.gamma, config.normalize.clip)

    def take(self, batch: Batch) -> Experience:
        """Count the batch in the statistics, which the policy uses from now on."""
        arrays = batch.arrays
        valid_TN = arrays["valid"].astype(np.bool_, copy=False)
        terminated_TN = arrays["terminated"].astype(np.bool_, copy=False)
        truncated_TN = arrays["truncated"].astype(np.bool_, copy=False)
        reward_TN = arrays["reward"].astype(np.float32, copy=False)
        if self._reward_scale is not None:
            done_TN = terminated_TN | truncated_TN
            reward_TN = self._reward_scale.scale(reward_TN, done_TN, valid_TN, batch.stamps)
        obs = {key: arrays[leaf_name(OBS, key)] for key in self._keys}
        if self._statistics is not None and self._encoder is not None:
            taken = {key: to_tensor(array[:-1][valid_TN]) for key, array in obs.items()}
            self._statistics.update(self._encoder.numbers(taken))
        final_names = {key: leaf_name(FINAL_OBS, key) for key in self._keys}
        action = arrays["action"]
        valid_action = valid_TN.reshape(*valid_TN.shape, *[1] * (action.ndim - 2))
        return Experience(
            obs=obs,
            final_obs={key: arrays[name] for key, name in final_names.items() if name in arrays},
            action=np.where(valid_action, action, np.zeros((), action.dtype)),
            log_prob_TN=np.where(valid_TN, arrays["log_prob"], np.float32(0.0)),
            reward_TN=np.where(valid_TN, reward_TN, np.float32(0.0)),
            terminated_TN=terminated_TN & valid_TN,
            truncated_TN=truncated_TN & valid_TN,
            valid_TN=valid_TN,
        )

    def state(self) -> dict[str, Tensor]:
        state: dict[str, Tensor] = {}
        if self._statistics is not None:
            state |= add_prefix("observations", self._statistics.state())
        if self._reward_scale is not None:
            state |= add_prefix("rewards", self._reward_scale.state())
        return state

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        if self._statistics is not None:
            self._statistics.load_state(with_prefix("observations", state))
        if self._reward_scale is not None:
            self._reward_scale.load_state(with_prefix("rewards", state))
