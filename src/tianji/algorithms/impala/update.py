"""IMPALA's learner: one pass over every batch, with the loss in loss.py.

B: valid steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
import torch
from torch import Tensor

from tianji.algorithms.accelerators.actor_critic import build_impala
from tianji.algorithms.actor_critic.experience import Experience, approximate_kl
from tianji.algorithms.actor_critic.model import ActorCritic
from tianji.algorithms.actor_critic.preprocessor import Preprocessor
from tianji.algorithms.impala.config import ImpalaConfig
from tianji.algorithms.impala.loss import PaddedPart, TracedSteps, UnrollPart, padded_part
from tianji.algorithms.interface import Minibatch
from tianji.algorithms.ranks import means_over_ranks, merged_moments, moments_of
from tianji.algorithms.steps import Steps
from tianji.channels.peers.interface import ALONE, Peers, total
from tianji.config.run import RunConfig
from tianji.devices.waits import Download
from tianji.envs.interface import Spaces
from tianji.models.moments import Statistics
from tianji.models.optimizers import Adam, RMSProp, build_optimizer, linear
from tianji.models.tensors import Tensors, add_prefix, flatten, kept, with_prefix
from tianji.ops.means import mean, variance
from tianji.types import Batch

TINY = 1e-30
"""Ratios are not smaller; those of steps that do not count are 0."""
ROUNDING = 1.0 + 1e-4
"""Ratios of 1 are not exactly 1: actors and learners add in different orders."""


ROW_MEANS = ("loss/policy", "loss/value", "approx_kl", "entropy", "rho", "rho_clipped")
"""Metrics that are means over all valid steps."""
EXPLAINED = "explained_variance"


class ImpalaUpdate:
    """See algorithms/interface.py."""

    def __init__(self, model: ActorCritic, spaces: Spaces, config: RunConfig) -> None:
        assert isinstance(config.algorithm, ImpalaConfig)
        self._config = config.algorithm
        self._flat = flat = flatten(model)
        self._evaluator, self._gradient = build_impala(model)
        self._preprocessor = Preprocessor(model, spaces, config, self._config.burn_in)
        epsilon = self._config.optimizer_epsilon
        rule = (
            Adam(flat, epsilon)
            if self._config.optimizer == "adam"
            else RMSProp(flat, epsilon, self._config.rmsprop_decay)
        )
        self._steps = Steps(build_optimizer(flat, rule, self._config.max_grad_norm))
        self._found: list[TracedSteps] = []
        self._weights: list[Tensor] = []
        self._experience: Experience | None = None
        self._peers: Peers = ALONE
        self._moments: Download | None = None
        """The moments of errors and targets, [3, 2], where there are several ranks."""

    def join(self, peers: Peers) -> None:
        """Make the updates of one learner with the batches of all ranks from now on."""
        self._peers = peers
        self._preprocessor.join(peers)

    def minibatch_steps(self, batch: Batch) -> int:
        return batch.num_steps // self._config.minibatches

    def minibatches(self, batch: Batch, progress: float) -> Iterator[Minibatch]:
        config = self._config
        self._steps.begin(linear(config.learning_rate, config.learning_rate_final, progress))
        self._found, self._weights = [], []
        self._moments = None
        self._experience = experience = self._preprocessor.process(batch)
        ends = np.linspace(0, experience.valid_TN.shape[1], config.minibatches + 1).astype(int)
        parts = [
            experience.select_envs(slice(begin, end))
            for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
        ]
        yield from self._minibatches_of(parts)
        if self._found:
            self._close()

    def _minibatches_of(self, parts: list[Experience]) -> Iterator[Minibatch]:
        if self._peers.num_ranks == 1:
            for some in parts:
                if some.counted_TN.any():
                    yield Minibatch(partial(self._differentiate, some), partial(self._step, some))
            return
        counts = [int(np.count_nonzero(some.counted_TN)) for some in parts]
        counts_of_all = total(self._peers, counts)
        for some, count, of_all in zip(parts, counts, counts_of_all, strict=True):
            if count:
                differentiate = partial(self._differentiate_part, some, count / of_all)
                yield Minibatch(differentiate, partial(self._step, some), count)
            elif of_all:
                yield Minibatch(self._no_gradient, self._steps.make)

    def _differentiate_part(self, some: Experience, share: float) -> Tensor:
        """Compute a mean over this rank's steps, as a part of the mean over those of all ranks."""
        return self._differentiate(some).mul_(share)

    def _no_gradient(self) -> Tensor:
        """Return the gradient of no steps, where only other ranks have some."""
        return self._flat.gradient_P.zero_()

    def _differentiate(self, some: Experience) -> Tensor:
        order = some.row_order()
        inputs = self._evaluator.inputs(some.obs_rows(order))
        final_value_C = some.final_value(self._evaluator)
        part: UnrollPart | PaddedPart
        if some.is_padded:
            part = padded_part(some, inputs, final_value_C)
            self._weights.append(part.weight_B)
        else:
            part = UnrollPart(some, order, inputs, some.action_rows(), final_value_C)
        found = self._gradient.gradient(part, self._config)
        self._found.append(TracedSteps(*(kept(x_B) for x_B in found)))
        return self._flat.gradient_P

    def _step(self, some: Experience) -> None:
        self._steps.make(partial(_suspects, some, self._found[-1]))

    def _close(self) -> None:
        """Compute means over all valid steps, before the update that they went into."""
        every = TracedSteps(*(torch.cat(parts) for parts in zip(*self._found, strict=True)))
        weight_B = torch.cat(self._weights) if self._weights else None
        error_B = every.target_B - every.value_B
        spread = variance(every.target_B, weight_B).clamp(1e-12)
        is_clipped_B = every.ratio_B > self._config.clip_rho * ROUNDING
        assert self._experience is not None, "something was found in it"
        self._steps.close(
            {
                "loss/policy": -mean(every.advantage_B * every.log_prob_B, weight_B),
                "loss/value": 0.5 * mean(error_B.square(), weight_B),
                "approx_kl": approximate_kl(every.ratio_B.clamp_min(TINY).log(), weight_B),
                "entropy": mean(every.entropy_B, weight_B),
                EXPLAINED: 1.0 - variance(error_B, weight_B) / spread,
                "rho": mean(every.ratio_B, weight_B),
                "rho_clipped": mean(is_clipped_B.float(), weight_B),
            },
            partial(_suspects, self._experience, every),
        )
        if self._peers.num_ranks > 1:
            errors_and_targets = torch.stack([error_B, every.target_B])
            self._moments = Download(moments_of(errors_and_targets, weight_B))
        self._found, self._weights = [], []

    def metrics(self) -> Mapping[str, float]:
        if self._found:
            self._close()
        found = self._steps.read()
        if self._peers.num_ranks > 1 and self._steps.is_any:
            found |= self._over_ranks(found)
        if found:
            found["learning_rate"] = self._steps.learning_rate
        self._experience = None
        return found

    def _over_ranks(self, found: Mapping[str, float]) -> dict[str, float]:
        """Return the metrics of the batches of all ranks; this one may have no steps."""
        mine = torch.zeros(3, 2, dtype=torch.float64)
        mine = mine if self._moments is None else self._moments.tensor()
        whole = merged_moments(self._peers, mine)
        unexplained, targets = whole.variance_F.tolist()
        means = means_over_ranks(self._peers, found, ROW_MEANS, float(mine[0, 0]))
        explained = 1.0 - unexplained / max(targets, 1e-12)
        return means | {EXPLAINED: explained, "grad_norm": float(self._steps.norm)}

    def state(self) -> dict[str, Tensor]:
        return {
            **add_prefix("optimizer", self._steps.optimizer.state()),
            **self._preprocessor.state(),
        }

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self._steps.optimizer.load_state(with_prefix("optimizer", state))
        self._preprocessor.load_state(state)

    def statistics(self) -> list[Statistics]:
        return self._preprocessor.statistics()


def _suspects(some: Experience, found: TracedSteps) -> Tensors:
    """Return what gradients were computed from, first causes first."""
    return {
        "observations": next(iter(some.obs_rows(some.row_order()).values())),
        "rewards": some.valid_rows(some.reward_TN),
        "policy outputs": found.log_prob_B,
        "values": found.value_B,
        "value targets": found.target_B,
    }
