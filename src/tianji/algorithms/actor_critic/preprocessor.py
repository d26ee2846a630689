"""From batches of unrolls to Experience: clipped and scaled rewards, and the statistics of all that
was seen.

T: time, N: environments side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from tianji.algorithms.actor_critic.experience import Experience
from tianji.algorithms.actor_critic.model import ActorCritic
from tianji.algorithms.actor_critic.sequences import (
    counted_steps,
    sequences_of,
    without_unseen,
    zero_unless,
)
from tianji.channels.peers.interface import ALONE, Peers
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.envs.spaces import observation_leaves
from tianji.models.moments import RunningMoments, Statistics
from tianji.models.sizes import reward_clip
from tianji.models.statistics import ObservationStatistics, RewardScale, merged
from tianji.models.tensors import (
    Tensors,
    add_prefix,
    flatten,
    to_tensors,
    with_prefix,
)
from tianji.ops.returns import Bools, Floats, Indices
from tianji.types import (
    AGE,
    FINAL_OBS,
    LIFE_LOST,
    OBS,
    PLACE,
    Batch,
    Observed,
    Stamp,
    joined,
    leaf_name,
)


def reward_deviation(config: RunConfig, state: Mapping[str, Tensor]) -> np.float32:
    """Return what rewards were divided by when the state of a Preprocessor was saved."""
    if not config.normalize.rewards:
        return np.float32(1.0)
    scale = RewardScale(config.algorithm.gamma, config.normalize.bound)
    scale.load_state(with_prefix("rewards", state))
    return scale.deviation


class Preprocessor:
    """Turns batches into Experience, and keeps the running statistics."""

    def __init__(
        self, model: ActorCritic, spaces: Spaces, config: RunConfig, burn_in: int = 0
    ) -> None:
        """burn_in: see ActorCriticConfig."""
        leaves = observation_leaves(spaces.observation)
        keys = [leaf.key for leaf in leaves]
        self._stacked = [leaf.key for leaf in leaves if leaf.num_frames]
        self._obs_names = {key: leaf_name(OBS, key) for key in keys}
        self._final_names = {key: leaf_name(FINAL_OBS, key) for key in keys}
        self._device = flatten(model).vector_P.device
        self._clip = reward_clip(spaces, config)
        self._burn_in = burn_in
        self._statistics = ObservationStatistics(model.net)
        self._reward_scale: RewardScale | None = None
        if config.normalize.rewards:
            self._reward_scale = RewardScale(config.algorithm.gamma, config.normalize.bound)
        self._peers: Peers = ALONE

    def join(self, peers: Peers) -> None:
        """Count the batches of all ranks from now on, so that all have the same statistics."""
        self._peers = peers

    def process(self, batch: Batch) -> Experience:
        """Count the batch in the statistics, which the policy uses from now on."""
        arrays = batch.arrays
        valid_TN = arrays["valid"].astype(np.bool_, copy=False)
        terminated_TN = arrays["terminated"].astype(np.bool_, copy=False)
        truncated_TN = arrays["truncated"].astype(np.bool_, copy=False)
        if LIFE_LOST in arrays:
            terminated_TN = terminated_TN | arrays[LIFE_LOST]
        reward_TN = arrays["reward"].astype(np.float32, copy=False)
        if self._clip is not None:
            reward_TN = reward_TN.clip(-self._clip, self._clip)
        obs = {key: arrays[name] for key, name in self._obs_names.items()}
        done_TN = terminated_TN | truncated_TN
        reward_TN = self._count(obs, reward_TN, done_TN, valid_TN, batch.stamps)
        final_names = self._final_names.items()
        action, log_prob_TN = arrays["action"], arrays["log_prob"]
        sequences = sequences_of(arrays)
        if sequences is not None:  # a sequence passes through steps that are not valid
            numbers = {key: x for key, x in obs.items() if key not in self._stacked}
            obs = {**obs, **{key: without_unseen(x, valid_TN) for key, x in numbers.items()}}
            action, log_prob_TN, reward_TN = (
                zero_unless(valid_TN, x) for x in (action, log_prob_TN, reward_TN)
            )
        return Experience(
            obs=obs,
            age={key: arrays[leaf_name(AGE, key)] for key in self._stacked},
            final_obs={key: arrays[name] for key, name in final_names if name in arrays},
            action=action,
            log_prob_TN=log_prob_TN,
            reward_TN=reward_TN,
            terminated_TN=terminated_TN,
            truncated_TN=truncated_TN,
            valid_TN=valid_TN,
            counted_TN=counted_steps(arrays, self._burn_in),
            next_N=following_columns(batch, valid_TN.shape[1]),
            device=self._device,
            is_padded=self._device.type != "cpu" or sequences is not None,
            sequences=sequences,
        )

    def _count(
        self,
        obs: Mapping[str, Observed],
        reward_TN: Floats,
        done_TN: Bools,
        valid_TN: Bools,
        stamps: Sequence[Stamp],
    ) -> Floats:
        """Count observations and rewards in the statistics; return the rewards in their scale."""
        statistics, scale = self._statistics, self._reward_scale
        if self._peers.num_ranks == 1:
            if statistics.is_used:
                statistics.update(self._numbers(obs, valid_TN))
            return reward_TN if scale is None else scale.scale(reward_TN, done_TN, valid_TN, stamps)
        parts: list[RunningMoments] = []
        if statistics.is_used:
            parts.append(statistics.moments_of(self._numbers(obs, valid_TN)))
        if scale is not None:
            parts.append(scale.moments_of(reward_TN, done_TN, valid_TN, stamps))
        parts = merged(self._peers, parts)
        if statistics.is_used:
            statistics.merge(parts[0])
        if scale is None:
            return reward_TN
        scale.merge(parts[-1])
        return scale.scaled(reward_TN, valid_TN)

    def _numbers(self, obs: Mapping[str, Observed], valid_TN: Bools) -> Tensors:
        """Return the observations that valid steps begin with, but for stacks of frames."""
        numbers = {key: joined(x) for key, x in obs.items() if key not in self._stacked}
        seen = {key: array[:-1][valid_TN] for key, array in numbers.items()}
        return to_tensors(seen, self._device)

    def state(self) -> Tensors:
        state = add_prefix("observations", self._statistics.state())
        if self._reward_scale is not None:
            state |= add_prefix("rewards", self._reward_scale.state())
        return state

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self._statistics.load_state(with_prefix("observations", state))
        if self._reward_scale is not None:
            self._reward_scale.load_state(with_prefix("rewards", state))

    def statistics(self) -> list[Statistics]:
        """Return the running statistics in use, which groups mix."""
        scale = self._reward_scale
        observations = [self._statistics] if self._statistics.is_used else []
        return [*observations, *([] if scale is None else [scale])]


def following_columns(batch: Batch, num_columns: int) -> Indices:
    """Return for each column of a batch the one in which the same environment goes on, where an
    actor's next unroll is in the batch too; -1 for the others."""
    next_N = np.full(num_columns, -1, np.int64)
    actors = [stamp.actor for stamp in batch.stamps]
    if PLACE not in batch.arrays or len(set(actors)) == len(actors):
        return next_N
    num_envs = num_columns // len(actors)
    places = batch.arrays[PLACE][::num_envs].tolist()  # one row for each column
    unrolls = list(zip(actors, places, strict=True))
    index_of = {(actor, *place[:2]): index for index, (actor, place) in enumerate(unrolls)}
    for index, (actor, (origin, before, made)) in enumerate(unrolls):
        following = index_of.get((actor, origin, before + made))
        if following is not None and made:  # a recording's unrolls are empty
            begin, then = index * num_envs, following * num_envs
            next_N[begin : begin + num_envs] = range(then, then + num_envs)
    return next_N
