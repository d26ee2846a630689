"""SAC's learner: several updates for every batch, with the losses in loss.py, and the target
critics, which follow the critics slowly.

All gradients of an update are taken at the same parameters. They are one vector, and so are the
parameters: policy, critics, temperature.

U: updates of a batch, B: transitions of an update, K: numbers of an action.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
import torch
from torch import Tensor

from tianji.algorithms.accelerators.sac import build_sac
from tianji.algorithms.interface import Minibatch
from tianji.algorithms.sac.config import SACConfig
from tianji.algorithms.sac.loss import Diagnostics, Transitions
from tianji.algorithms.sac.model import (
    Networks,
    SACPolicy,
    TwinCritics,
    action_layout,
    build_networks,
)
from tianji.algorithms.sampled import read_sampled
from tianji.algorithms.steps import Steps
from tianji.config.run import RunConfig
from tianji.config.seeding import seed_for
from tianji.envs.interface import Spaces
from tianji.envs.spaces import observation_leaves
from tianji.models.moments import Statistics
from tianji.models.optimizers import Adam, build_optimizer, linear
from tianji.models.statistics import ObservationStatistics
from tianji.models.tensors import Tensors, add_prefix, flatten, kept, with_prefix
from tianji.types import Array, Batch

ADAM_EPSILON = 1e-8
CRITICS, TARGETS, TEMPERATURE, NUM_BATCHES = "critics", "targets", "temperature", "num_batches"
"""What the state of the update holds beside that of its optimiser and statistics."""


class TargetCritics:
    """Copies of the critics that follow them a little in every update."""

    def __init__(self, networks: Networks, tau: float) -> None:
        """The critics must not be flat yet: a copy of a part of a vector copies all of it."""
        self.model: TwinCritics = copy.deepcopy(networks.critics).requires_grad_(False)
        self.model.normalize_like(networks.policy)
        self.vector_P = flatten(self.model).vector_P
        flatten(networks)
        self._critics_P = flatten(networks.critics).vector_P
        self._tau = tau

    def follow(self) -> None:
        """Move towards the critics; called after every update."""
        self.vector_P.lerp_(self._critics_P, self._tau)


class SACUpdate:
    """See algorithms/interface.py."""

    def __init__(self, model: SACPolicy, spaces: Spaces, config: RunConfig) -> None:
        assert isinstance(config.algorithm, SACConfig)
        self._config = config.algorithm
        self._seed = config.seed
        self._keys = [leaf.key for leaf in observation_leaves(spaces.observation)]
        layout = action_layout(spaces)
        self._scale = _Scale(layout.middle, layout.half)
        asked = self._config.target_entropy
        self._target_entropy = -float(layout.num_numbers) if asked == "auto" else asked
        self._networks = networks = build_networks(model, spaces, config)
        self._targets = TargetCritics(networks, self._config.target_tau)
        self._flat = flat = flatten(networks)
        self._gradient = build_sac(networks, self._targets.model)
        # Critics' gradients are as large as their errors: a bound would be one on the rewards.
        self._steps = Steps(build_optimizer(flat, Adam(flat, ADAM_EPSILON), math.inf))
        self._statistics = ObservationStatistics(model.net)
        self._num_batches = 0
        self._found: list[Diagnostics] = []
        self._transitions: Transitions | None = None

    def minibatch_steps(self, batch: Batch) -> int:
        return int(batch.arrays["reward"].shape[1])

    def minibatches(self, batch: Batch, progress: float) -> Iterator[Minibatch]:
        config = self._config
        self._steps.begin(linear(config.learning_rate, config.learning_rate_final, progress))
        self._found = []
        self._transitions = transitions = self._read(batch.arrays)
        prepared = self._gradient.prepare(transitions, self._target_entropy)
        for u in range(len(transitions.reward)):
            one = prepared.update(u)
            yield Minibatch(partial(self._differentiate, one), partial(self._step, one))
        self._close()

    def _read(self, arrays: Mapping[str, Array]) -> Transitions:
        """Count the observations in the statistics, move everything to the device, and draw the
        noise: it depends on the seed and on the number of the batch alone."""
        device = self._flat.vector_P.device
        sampled = read_sampled(arrays, self._keys, device)
        self._statistics.update({key: x_UB.flatten(0, 1) for key, x_UB in sampled.obs.items()})
        action = sampled.action
        action_UBK = self._scale.to_unit(
            action.flatten(2) if action.ndim > 2 else action[..., None]
        )
        generator = torch.Generator(device)
        generator.manual_seed(seed_for(self._seed, "learner", 1 + self._num_batches))
        self._num_batches += 1
        shape = (2, *action_UBK.shape)
        noise, next_noise = torch.randn(shape, generator=generator, device=device)
        return Transitions(*sampled._replace(action=action_UBK), noise, next_noise)

    def _differentiate(self, minibatch: Transitions) -> Tensor:
        found = self._gradient.gradient(minibatch, self._target_entropy)
        self._found.append(Diagnostics(*(kept(x) for x in found)))
        return self._flat.gradient_P

    def _step(self, minibatch: Transitions) -> None:
        self._steps.make(partial(_suspects, minibatch, self._found[-1]))
        self._targets.follow()

    def _close(self) -> None:
        """Compute the figures of the updates that were made."""
        found = Diagnostics(*(torch.stack(parts) for parts in zip(*self._found, strict=True)))
        error_UB = found.q_B - found.target_B
        assert self._transitions is not None, "something was found in them"
        self._steps.close(
            {
                "loss/policy": (found.alpha * found.log_prob_B - found.policy_q_B).mean(),
                "q_mean": found.q_B.mean(),
                "q_max": found.q_B.max(),
                "target_mean": found.target_B.mean(),
                "td_error_abs": error_UB.abs().mean(),
                "entropy": -found.log_prob_B.mean(),
                "temperature": found.alpha[-1],
            },
            partial(_suspects, self._transitions, found),
        )
        self._found = []

    def metrics(self) -> Mapping[str, float]:
        if self._found:
            self._close()
        found = self._steps.read()
        if found:
            found["learning_rate"] = self._steps.learning_rate
        self._transitions = None
        return found

    def state(self) -> Tensors:
        return {
            **add_prefix("optimizer", self._steps.optimizer.state()),
            **add_prefix("observations", self._statistics.state()),
            CRITICS: flatten(self._networks.critics).vector_P.clone(),
            TARGETS: self._targets.vector_P.clone(),
            TEMPERATURE: self._networks.temperature.log.detach().clone(),
            NUM_BATCHES: torch.tensor(self._num_batches),
        }

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self._steps.optimizer.load_state(with_prefix("optimizer", state))
        self._statistics.load_state(with_prefix("observations", state))
        flatten(self._networks.critics).vector_P.copy_(state[CRITICS])
        self._targets.vector_P.copy_(state[TARGETS])
        self._networks.temperature.log.detach().copy_(state[TEMPERATURE])
        self._num_batches = int(state[NUM_BATCHES])

    def statistics(self) -> list[Statistics]:
        return [self._statistics] if self._statistics.is_used else []


class _Scale:
    """Turns actions of the environment into those of the networks, in [-1, 1]."""

    def __init__(self, middle_K: Array, half_K: Array) -> None:
        safe_K = np.where(half_K > 0.0, half_K, np.float32(np.inf))  # one possible value: always 0
        self._middle_K, self._half_K = torch.from_numpy(middle_K), torch.from_numpy(safe_K)

    def to_unit(self, action_UBK: Tensor) -> Tensor:
        if self._middle_K.device != action_UBK.device:
            device = action_UBK.device
            self._middle_K, self._half_K = self._middle_K.to(device), self._half_K.to(device)
        return (action_UBK - self._middle_K) / self._half_K


def _suspects(transitions: Transitions, found: Diagnostics) -> Tensors:
    """Return what gradients were computed from, first causes first."""
    return {
        "observations": next(iter(transitions.obs.values())),
        "rewards": transitions.reward,
        "Q values": found.q_B,
        "Q targets": found.target_B,
        "log-probabilities": found.log_prob_B,
    }
