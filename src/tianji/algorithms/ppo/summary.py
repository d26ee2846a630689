"""What PPO computes of a whole batch: its columns before the first update, metrics after the last.

R: rows of the batch, M: rows of all minibatches.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from tianji.algorithms.actor_critic.experience import approximate_kl
from tianji.algorithms.actor_critic.model import Evaluation
from tianji.algorithms.ppo.batch import AnyColumns, Columns, PaddedColumns
from tianji.algorithms.ppo.config import PPOConfig
from tianji.algorithms.ppo.loss import clipped_surrogate
from tianji.algorithms.ranks import merged_moments, moments_of
from tianji.channels.peers.interface import Peers
from tianji.models.tensors import Tensors
from tianji.ops.means import deviation, mean, variance

TINY = 1e-8
"""Added to the deviation of advantages, which may be 0."""
ROW_MEANS = ("loss/policy", "loss/value", "approx_kl", "clip_fraction")
"""Metrics that are means over the rows of all updates."""


class Spread(NamedTuple):
    """Mean and deviation of the advantages of all ranks."""

    mean: float | Tensor
    deviation: float | Tensor


class WholeBatch(NamedTuple):
    """What is known of the batches of all ranks before the first update."""

    spread: Spread
    metrics: dict[str, float]


def behaviour_weights(config: PPOConfig, found: Evaluation, behaviour_R: Tensor) -> Tensor:
    """Return w of every row (see ppo_loss)."""
    return (found.log_prob_B - behaviour_R).exp().clamp(max=config.max_behaviour_weight)


def make_columns(
    config: PPOConfig,
    found: Evaluation,
    advantage_R: Tensor,
    behaviour_R: Tensor,
    counts_R: Tensor | None,
    spread: Spread | None = None,
) -> tuple[AnyColumns, Tensors]:
    """Return the columns of a batch that was evaluated once, and the metrics known by then.

    behaviour_R: log pi_behaviour(a|s). counts_R: the weight of each row, where some do not count.
    spread: of the advantages of all ranks; None: these are all.
    """
    value_R = found.value_R[: len(advantage_R)]
    weight_R = behaviour_weights(config, found, behaviour_R)
    normalized_R = advantage_R
    if config.normalize_advantage:  # over the whole batch: minibatches do not matter to a row
        if spread is None:
            spread = Spread(mean(advantage_R, counts_R), deviation(advantage_R, counts_R))
        normalized_R = (advantage_R - spread.mean) / (spread.deviation + TINY)
    columns: AnyColumns = Columns(
        log_prob_B=found.log_prob_B if config.decoupled else behaviour_R,
        weighted_advantage_B=normalized_R * weight_R if config.decoupled else normalized_R,
        target_B=value_R + advantage_R,
        value_B=value_R,
    )
    if counts_R is not None:
        columns = PaddedColumns(**columns._asdict(), weight_B=counts_R)
    at_start = {
        "entropy": mean(found.entropy_B, counts_R),
        "behaviour_weight": mean(weight_R, counts_R),
    }
    return columns, at_start


def start_moments(
    config: PPOConfig,
    found: Evaluation,
    advantage_R: Tensor,
    behaviour_R: Tensor,
    counts_R: Tensor | None,
) -> Tensor:
    """Return the number of rows of one rank, and means and sums of squared deviations of their
    advantages, targets, entropies and weights, [3, 4] in float64: what whole_batch() needs."""
    target_R = found.value_R[: len(advantage_R)] + advantage_R
    weight_R = behaviour_weights(config, found, behaviour_R)
    x_4R = torch.stack([advantage_R, target_R, found.entropy_B, weight_R])
    return moments_of(x_4R, counts_R)


def whole_batch(peers: Peers, moments_34: Tensor) -> WholeBatch:
    """Return the figures of all ranks from the start_moments() of each."""
    whole = merged_moments(peers, moments_34)
    advantage, _, entropy, weight = whole.mean_F.tolist()
    # The target of a value is the value and the advantage: the advantage is what it leaves open.
    unexplained, targets, *_ = whole.variance_F.tolist()
    metrics = {
        "entropy": entropy,
        "behaviour_weight": weight,
        "explained_variance": 1.0 - unexplained / max(targets, 1e-12),
    }
    return WholeBatch(Spread(advantage, math.sqrt(unexplained)), metrics)


def batch_metrics(
    columns: AnyColumns,
    log_ratio_M: Tensor,
    value_error_M: Tensor,
    order_M: Tensor,
    weight_M: Tensor | None,
    clip: float | Tensor,
) -> Tensors:
    """Return means over all updates; explained variance from before the first.

    order_M: the row of the batch of each number. weight_M: their weights, where some do not count.
    All may have more axes.
    """
    ratio_M = log_ratio_M.exp()
    surrogate_M = clipped_surrogate(ratio_M, columns.weighted_advantage_B[order_M], clip)
    is_clipped_M = (ratio_M - 1.0).abs() > clip
    return {
        "loss/policy": -mean(surrogate_M, weight_M),
        "loss/value": mean(value_error_M.square(), weight_M),
        "approx_kl": approximate_kl(log_ratio_M, weight_M),
        "clip_fraction": mean(is_clipped_M.float(), weight_M),
        "explained_variance": _explained_variance(columns),
    }


def _explained_variance(columns: AnyColumns) -> Tensor:
    """Return 1 for perfect values, 0 for values no better than a constant."""
    unexplained = variance(columns.target_B - columns.value_B, columns.weights)
    return 1.0 - unexplained / variance(columns.target_B, columns.weights).clamp(1e-12)
