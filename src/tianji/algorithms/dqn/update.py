"""DQN's learner.

    loss = E[ huber(Q(s, a) - y) ],   y = R + discount * Q_target(s', argmax_a' Q(s', a'))

where R and the discount are those of n-step returns, made by the store. The online network sees s
and s' in one pass; gradients by its outputs are in closed form (ops/td.py).

U: updates of a batch, B: transitions of an update, A: actions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tianji.algorithms.dqn.config import DQNConfig
from tianji.algorithms.dqn.model import QNetwork, num_actions
from tianji.algorithms.dqn.target import TargetNetwork
from tianji.envs.interface import Spaces
from tianji.envs.spaces import observation_leaves
from tianji.models.flat import flatten
from tianji.models.networks.gradient import Inputs, build_gradient_net
from tianji.models.networks.stacked import StackedNet
from tianji.models.normalize import ObservationStatistics
from tianji.models.optimizers import Adam, Optimizer
from tianji.models.tensors import add_prefix, to_tensor, with_prefix
from tianji.ops.schedules import linear
from tianji.ops.td import dueling_gradient, q_target, td_gradient, td_loss
from tianji.types import OBS, Array, Batch, leaf_name

if TYPE_CHECKING:
    from tianji.config.run import RunConfig

ADAM_EPSILON = 1e-8
NEXT_OBS = "next_obs"


class DQNUpdate:
    """See algorithms/interface.py."""

    def __init__(self, model: QNetwork, spaces: Spaces, config: RunConfig) -> None:
        assert isinstance(config.algorithm, DQNConfig)
        self._config = config.algorithm
        self._model = model
        self._keys = [leaf.key for leaf in observation_leaves(spaces.observation)]
        self._num_actions = num_actions(spaces)
        flat = flatten(model)
        self._network = build_gradient_net(model.net, flat)
        self._target = TargetNetwork(model, self._config)
        self._optimizer = Optimizer(flat, Adam(flat, ADAM_EPSILON), self._config.max_grad_norm)
        self._encoder = model.net.encoder if isinstance(model.net, StackedNet) else None
        self._statistics: ObservationStatistics | None = None
        if self._encoder is not None and self._encoder.normalizer is not None:
            self._statistics = ObservationStatistics(self._encoder.normalizer)

    def minibatch_steps(self, batch: Batch) -> int:
        return int(batch.arrays["reward"].shape[1])

    def steps(self, batch: Batch, progress: float) -> Iterator[Mapping[str, float]]:
        config, arrays = self._config, batch.arrays
        learning_rate = linear(config.learning_rate, config.learning_rate_final, progress)
        obs, next_obs = (self._rows(arrays, prefix) for prefix in (OBS, NEXT_OBS))
        if self._statistics is not None and self._encoder is not None:
            self._statistics.update(self._encoder.numbers(obs))
        num_updates, num_rows = arrays["reward"].shape
        inputs = self._both(obs, next_obs, num_updates, num_rows)
        action_UB = to_tensor(arrays["action"])
        hot_UAB = F.one_hot(action_UB, self._num_actions).transpose(1, 2).float().contiguous()
        reward_UB, discount_UB = to_tensor(arrays["reward"]), to_tensor(arrays["discount"])
        q_UB, target_UB = torch.empty_like(reward_UB), torch.empty_like(reward_UB)
        norms: list[float] = []
        for u in range(num_updates):
            now = {name: x[u] for name, x in inputs.items()}
            norm = self._update(
                now, hot_UAB[u], reward_UB[u], discount_UB[u], q_UB[u], target_UB[u], learning_rate
            )
            norms.append(norm)
            self._target.follow()
            if u + 1 < num_updates:
                yield {}
        yield {
            **self._metrics(q_UB, target_UB),
            "grad_norm": sum(norms) / len(norms),
            "learning_rate": learning_rate,
        }

    def _rows(self, arrays: Mapping[str, Array], prefix: str) -> Inputs:
        """One kind of observations of all updates, [U * B, ...] by leaf key."""
        named = {key: arrays[leaf_name(prefix, key)] for key in self._keys}
        return {key: to_tensor(array.reshape(-1, *array.shape[2:])) for key, array in named.items()}

    def _both(self, obs: Inputs, next_obs: Inputs, num_updates: int, num_rows: int) -> Inputs:
        """[U, 2B, ...]: the rows of every update, and after them those that they led to."""
        here, there = self._network.prepare(obs), self._network.prepare(next_obs)
        both: Inputs = {}
        for name, x in here.items():
            shape = (num_updates, num_rows, *x.shape[1:])
            both[name] = torch.cat([x.view(shape), there[name].view(shape)], 1)
        return both

    def _update(
        self,
        inputs: Inputs,
        hot_AB: Tensor,
        reward_B: Tensor,
        discount_B: Tensor,
        q_B: Tensor,
        target_B: Tensor,
        learning_rate: float,
    ) -> float:
        num_rows = len(reward_B)
        with self._network.guard():
            next_target_AB = self._target.evaluate(
                {name: x[num_rows:] for name, x in inputs.items()}
            )
            if not self._config.double:
                inputs = {name: x[:num_rows] for name, x in inputs.items()}
            outputs_AB = self._network.forward(inputs, num_rows)
            all_q_AB = self._model.combine(outputs_AB)
            next_q_AB = all_q_AB[:, num_rows:] if self._config.double else None
            target_B.copy_(q_target(reward_B, discount_B, next_target_AB, next_q_AB))
            torch.sum(all_q_AB[:, :num_rows] * hot_AB, 0, out=q_B)
            slope_B = td_gradient(q_B - target_B, self._config.loss) / num_rows
            q_gradient_AB = hot_AB * slope_B
            if self._model.is_dueling:
                self._network.backward(*dueling_gradient(q_gradient_AB))
            else:
                self._network.backward(q_gradient_AB)
            return self._optimizer.step(
                learning_rate,
                lambda: {
                    "observations": next(iter(inputs.values())),
                    "rewards": reward_B,
                    "Q values": q_B,
                    "Q targets": target_B,
                },
            )

    def _metrics(self, q_UB: Tensor, target_UB: Tensor) -> dict[str, float]:
        error_UB = q_UB - target_UB
        values = {
            "loss/td": td_loss(error_UB, self._config.loss).mean(),
            "q_mean": q_UB.mean(),
            "q_max": q_UB.max(),
            "target_mean": target_UB.mean(),
            "td_error_abs": error_UB.abs().mean(),
        }
        return {name: float(value) for name, value in values.items()}

    def state(self) -> dict[str, Tensor]:
        statistics = self._statistics.state() if self._statistics is not None else {}
        return {
            **add_prefix("optimizer", self._optimizer.state()),
            **add_prefix("target", self._target.state()),
            **add_prefix("observations", statistics),
        }

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self._optimizer.load_state(with_prefix("optimizer", state))
        self._target.load_state(with_prefix("target", state))
        if self._statistics is not None:
            self._statistics.load_state(with_prefix("observations", state))


def build_update(model: nn.Module, spaces: Spaces, config: RunConfig) -> DQNUpdate:
    assert isinstance(model, QNetwork)
    return DQNUpdate(model, spaces, config)
