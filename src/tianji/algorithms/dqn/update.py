"""DQN's learner: several updates for every batch, with the loss in loss.py.

U: updates of a batch, B: transitions of an update.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
import torch
from torch import Tensor

from tianji.algorithms.accelerators.dqn import build_dqn
from tianji.algorithms.dqn.config import DQNConfig
from tianji.algorithms.dqn.loss import Diagnostics, Transitions, td_loss
from tianji.algorithms.dqn.model import QNetwork
from tianji.algorithms.dqn.target import TargetNetwork
from tianji.algorithms.interface import Minibatch
from tianji.algorithms.ranks import means_over_ranks
from tianji.algorithms.sampled import read_sampled
from tianji.algorithms.steps import Steps
from tianji.channels.peers.interface import ALONE, Peers, gathered
from tianji.config.run import RunConfig
from tianji.devices.waits import Download
from tianji.envs.interface import Spaces
from tianji.envs.spaces import observation_leaves
from tianji.models.moments import Statistics
from tianji.models.optimizers import Adam, build_optimizer, linear
from tianji.models.statistics import ObservationStatistics, merged
from tianji.models.tensors import Tensors, add_prefix, flatten, kept, to_tensor, with_prefix
from tianji.types import Array, Batch

ADAM_EPSILON = 1e-8
ROW_MEANS = ("loss/td", "q_mean", "target_mean", "td_error_abs")
"""Metrics that are means over the transitions of all updates."""
Q_MAX = "q_max"


class DQNUpdate:
    """See algorithms/interface.py."""

    def __init__(self, model: QNetwork, spaces: Spaces, config: RunConfig) -> None:
        assert isinstance(config.algorithm, DQNConfig)
        self._config = config.algorithm
        self._keys = [leaf.key for leaf in observation_leaves(spaces.observation)]
        self._flat = flat = flatten(model)
        self._target = TargetNetwork(
            model, self._config.target_period_updates, self._config.target_tau
        )
        self._gradient = build_dqn(model, self._target.model)
        rule = Adam(flat, ADAM_EPSILON)
        self._steps = Steps(build_optimizer(flat, rule, self._config.max_grad_norm))
        self._statistics = ObservationStatistics(model.net)
        self._found: list[Diagnostics] = []
        self._errors: Download | None = None
        self._transitions: Transitions | None = None
        self._peers: Peers = ALONE
        self._num_rows = 0
        """Transitions of the updates that the figures are about."""

    def join(self, peers: Peers) -> None:
        """Make the updates of one learner with the batches of all ranks from now on."""
        self._peers = peers

    def minibatch_steps(self, batch: Batch) -> int:
        return int(batch.arrays["reward"].shape[1])

    def minibatches(self, batch: Batch, progress: float) -> Iterator[Minibatch]:
        config = self._config
        self._steps.begin(linear(config.learning_rate, config.learning_rate_final, progress))
        self._found = []
        self._errors = None
        self._transitions = transitions = self._read(batch.arrays)
        num_here, num_rows = transitions.reward.shape
        num_updates = num_here
        if self._peers.num_ranks > 1:
            factors = self._factors(batch.arrays, num_here, num_rows)
            num_updates = len(factors)
            factor_U = torch.tensor(factors[:num_here], device=transitions.weight.device)
            transitions = transitions._replace(weight=transitions.weight * factor_U[:, None])
        prepared = self._gradient.prepare(transitions, config)
        for u in range(num_here):
            one = prepared.update(u)
            yield Minibatch(partial(self._differentiate, one), partial(self._step, one), num_rows)
        for _ in range(num_here, num_updates):
            yield Minibatch(self._no_gradient, self._step_with_others)
        error_UB = self._close()
        if config.sampling == "prioritized":
            self._errors = Download(error_UB.abs())

    def _factors(self, arrays: Mapping[str, Array], num_here: int, num_rows: int) -> list[float]:
        """Return for each update what turns a mean over this rank's transitions, with weights in
        the scale of its own store, into its part of the mean over those of all ranks.

        A rank with fewer updates than others has no transitions in their last ones.
        """
        ranks = gathered(self._peers, [num_here, num_rows])
        num_updates = int(max(updates for updates, _ in ranks))
        shares = [
            num_rows / sum(rows for updates, rows in ranks if updates > u)
            for u in range(num_updates)
        ]
        if self._config.sampling != "prioritized":
            return shares
        largest_U = np.zeros(num_updates)
        largest_U[:num_here] = arrays.get("largest_weight", 1.0)
        of_all_U = np.max(gathered(self._peers, largest_U.tolist()), 0)
        scaled: list[float] = (np.array(shares) * largest_U / of_all_U).tolist()
        return scaled

    def _read(self, arrays: Mapping[str, Array]) -> Transitions:
        """Count the observations in the statistics, and move everything to the device."""
        device = self._flat.vector_P.device
        sampled = read_sampled(arrays, self._keys, device)
        self._count({key: x_UB.flatten(0, 1) for key, x_UB in sampled.obs.items()})
        if "weight" in arrays:
            return Transitions(*sampled, to_tensor(arrays["weight"], device))
        return Transitions(*sampled, torch.ones_like(sampled.reward))

    def _count(self, obs: Tensors) -> None:
        """Count observations in the statistics, those of all ranks on each."""
        if self._peers.num_ranks == 1:
            self._statistics.update(obs)
        elif self._statistics.is_used:
            self._statistics.merge(*merged(self._peers, [self._statistics.moments_of(obs)]))

    def _no_gradient(self) -> Tensor:
        """Return the gradient of no transitions, where only other ranks have some."""
        return self._flat.gradient_P.zero_()

    def _step_with_others(self) -> None:
        self._steps.make()
        self._target.follow()

    def _differentiate(self, minibatch: Transitions) -> Tensor:
        found = self._gradient.gradient(minibatch, self._config)
        self._found.append(Diagnostics(*(kept(x_B) for x_B in found)))
        return self._flat.gradient_P

    def _step(self, minibatch: Transitions) -> None:
        found = self._found[-1]
        self._steps.make(partial(_suspects, minibatch, found.q_B, found.target_B))
        self._target.follow()

    def _close(self) -> Tensor:
        """Compute the figures of the updates that were made; return their TD errors."""
        q_UB, target_UB = (torch.stack(parts) for parts in zip(*self._found, strict=True))
        error_UB = q_UB - target_UB
        assert self._transitions is not None, "something was found in them"
        self._steps.close(
            {
                "loss/td": td_loss(error_UB, self._config.loss).mean(),
                "q_mean": q_UB.mean(),
                Q_MAX: q_UB.max(),
                "target_mean": target_UB.mean(),
                "td_error_abs": error_UB.abs().mean(),
            },
            partial(_suspects, self._transitions, q_UB, target_UB),
        )
        self._found = []
        self._num_rows = q_UB.numel()
        return error_UB

    def priorities(self) -> Array | None:
        """Return the TD errors of all transitions of the last batch, in the order of its keys;
        None where they do not count, or not all updates were made."""
        errors, self._errors = self._errors, None
        return None if errors is None else errors.read().reshape(-1)

    def metrics(self) -> Mapping[str, float]:
        if self._found:
            self._close()
        found = self._steps.read()
        if found:
            if self._peers.num_ranks > 1:
                found |= self._over_ranks(found)
            found["learning_rate"] = self._steps.learning_rate
        self._transitions = None
        return found

    def _over_ranks(self, found: Mapping[str, float]) -> dict[str, float]:
        """Return the metrics of the updates of all ranks: each has transitions in the first."""
        largest = max(q_max for (q_max,) in gathered(self._peers, [found[Q_MAX]]))
        means = means_over_ranks(self._peers, found, ROW_MEANS, self._num_rows)
        return means | {Q_MAX: largest}

    def state(self) -> Tensors:
        return {
            **add_prefix("optimizer", self._steps.optimizer.state()),
            **add_prefix("target", self._target.state()),
            **add_prefix("observations", self._statistics.state()),
        }

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self._steps.optimizer.load_state(with_prefix("optimizer", state))
        self._target.load_state(with_prefix("target", state))
        self._statistics.load_state(with_prefix("observations", state))

    def statistics(self) -> list[Statistics]:
        return [self._statistics] if self._statistics.is_used else []


def _suspects(transitions: Transitions, q: Tensor, target: Tensor) -> Tensors:
    """Return what gradients were computed from, first causes first."""
    return {
        "observations": next(iter(transitions.obs.values())),
        "rewards": transitions.reward,
        "Q values": q,
        "Q targets": target,
    }
