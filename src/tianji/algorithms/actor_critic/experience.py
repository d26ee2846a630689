"""A batch of unrolls as PPO and IMPALA process it: normalised, on the learner's device.

T: time, N: environments side by side, R: rows, B: valid steps, K: choices or numbers of an action,
C: valid steps that ended with a truncation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tianji.algorithms.actor_critic.model import Evaluator
from tianji.algorithms.actor_critic.sequences import (
    Sequences,
)
from tianji.models.networks.recurrent import RESETS, STATE
from tianji.models.tensors import (
    Tensors,
    to_tensor,
    to_tensors,
)
from tianji.ops.frames import stack_rows
from tianji.ops.means import mean
from tianji.ops.returns import Bools, Floats, Indices, gae
from tianji.types import (
    Array,
    Observed,
    joined,
)


class RowOrder(NamedTuple):
    """The order of the rows that the network gets.

    The first rows are those where valid steps begin, which are trained on. Rows where valid steps
    only end, which are only evaluated, come after them. All others are left out.

    index_R: positions among all (T + 1) * N rows; None for all of them in their own order
    """

    num_valid: int
    index_R: NDArray[np.int64] | None


@dataclass(frozen=True)
class Experience:
    """Arrays [T, N, ...]; rows that are not valid may hold anything.

    obs: [T + 1, N, ...] by leaf key; anything in rows that no valid step begins or ends with
    age: [T + 1, N] by leaf key, for stacks of frames: their obs has a frame for each row, and K - 1
        more at the beginning
    final_obs: [T, N, ...] by leaf key, empty where obs[t + 1] is the true next observation
    counted_TN: the valid steps that are trained on: all, unless there is a burn-in
    next_N: the column in which the steps of each column go on, -1 where they do not
    is_padded: steps that are not valid are kept, with weight 0, so that shapes never change
    sequences: the columns as sequences, where the policy has a memory; they are padded
    """

    obs: Mapping[str, Observed]
    age: Mapping[str, Array]
    final_obs: Mapping[str, Array]
    action: Array
    log_prob_TN: Floats
    reward_TN: Floats
    terminated_TN: Bools
    truncated_TN: Bools
    valid_TN: Bools
    counted_TN: Bools
    next_N: Indices
    device: torch.device
    is_padded: bool
    sequences: Sequences | None = None

    def select_envs(self, part: slice) -> Experience:
        """Return some of the environments, over all steps, each for itself."""
        if part == slice(0, self.valid_TN.shape[1]):
            return self  # frames of several unrolls stay where they are
        return Experience(
            {key: joined(array)[:, part] for key, array in self.obs.items()},
            {key: array[:, part] for key, array in self.age.items()},
            {key: array[:, part] for key, array in self.final_obs.items()},
            self.action[:, part],
            self.log_prob_TN[:, part],
            self.reward_TN[:, part],
            self.terminated_TN[:, part],
            self.truncated_TN[:, part],
            self.valid_TN[:, part],
            self.counted_TN[:, part],
            np.full_like(self.next_N[part], -1),
            self.device,
            self.is_padded,
            None if self.sequences is None else self.sequences.select_envs(part),
        )

    @property
    def num_items(self) -> int:
        """Number of things that minibatches are made of: steps, or whole sequences."""
        return self.valid_TN.size if self.sequences is None else self.valid_TN.shape[1]

    @property
    def _keeps_all(self) -> bool:
        return self.is_padded or bool(self.valid_TN.all())

    def row_order(self) -> RowOrder:
        valid_TN = self.valid_TN
        if self._keeps_all:
            return RowOrder(valid_TN.size, None)
        begins = np.zeros((len(valid_TN) + 1, valid_TN.shape[1]), np.bool_)
        begins[:-1] = valid_TN
        ends = np.zeros_like(begins)
        ends[1:] = valid_TN
        index_R = np.concatenate([np.flatnonzero(begins), np.flatnonzero(ends & ~begins)])
        return RowOrder(int(np.count_nonzero(valid_TN)), index_R)

    def obs_rows(self, order: RowOrder) -> Tensors:
        """Return the observations [R, ...] of all rows in the order, and what a memory needs beside
        them."""
        rows = {key: self._obs_rows(key, order.index_R) for key in self.obs}
        if self.sequences is not None:
            rows[RESETS] = to_tensor(self.sequences.resets_T1N, self.device).flatten()
            rows[STATE] = to_tensor(self.sequences.state_NS, self.device)
        return rows

    def _obs_rows(self, key: str, index_R: NDArray[np.int64] | None) -> Tensor:
        if key in self.age:
            frames_FN = to_tensor(self.obs[key], self.device)
            age_RN = to_tensor(self.age[key], self.device)
            index = None if index_R is None else to_tensor(index_R, self.device)
            return stack_rows(frames_FN, age_RN, index)
        array = joined(self.obs[key])
        rows = array.reshape(-1, *array.shape[2:])
        return to_tensor(rows if index_R is None else rows[index_R], self.device)

    def to_grid(self, order: RowOrder, value_R: Tensor) -> Floats:
        """Put the values of those rows back in their places, [T + 1, N]; 0 elsewhere."""
        shape = (len(self.valid_TN) + 1, self.valid_TN.shape[1])
        given: Floats = value_R.numpy(force=True)
        if order.index_R is None:
            return given.reshape(shape)
        value_T1N = np.zeros(shape, np.float32)
        value_T1N.reshape(-1)[order.index_R] = given
        return value_T1N

    def valid_rows(self, x_TN: Array) -> Tensor:
        """Return the valid steps of an array, in the order of the rows: [B, ...]."""
        x_B = x_TN.reshape(-1, *x_TN.shape[2:]) if self._keeps_all else x_TN[self.valid_TN]
        return to_tensor(x_B, self.device)

    def weight_rows(self) -> Tensor | None:
        """Return 1 for each step that counts and 0 for others; None where only those are kept."""
        return self.valid_rows(self.counted_TN).float() if self.is_padded else None

    def action_rows(self) -> Tensor:
        """Return the actions of the valid steps, [B, K]."""
        action = self.valid_rows(self.action)
        return action.reshape(len(action), -1)

    def gae(
        self, order: RowOrder, value_R: Tensor, final_value_C: Tensor, gamma: float, lam: float
    ) -> Tensor:
        """Return the advantages of the valid steps, [B], from the values of all rows."""
        value_T1N = self.to_grid(order, value_R)
        advantage_TN = gae(
            self.reward_TN,
            value_T1N[:-1],
            self.next_value(value_T1N, final_value_C),
            self.terminated_TN,
            self.truncated_TN,
            self.valid_TN,
            gamma,
            lam,
            self.next_N if self.next_N.max() >= 0 else None,
        )
        return self.valid_rows(advantage_TN)

    def final_value(self, evaluator: Evaluator) -> Tensor:
        """Return the values of truncated episodes' final observations where those are kept apart:
        [C]."""
        truncated_TN = self.truncated_TN & self.valid_TN
        if not self.final_obs or not truncated_TN.any():
            return torch.empty(0)
        final = {key: array[truncated_TN] for key, array in self.final_obs.items()}
        inputs = evaluator.inputs(to_tensors(final, self.device))
        if self.sequences is not None:
            at_C = to_tensor(np.flatnonzero(truncated_TN), self.device)
            state_RS = evaluator.states(evaluator.inputs(self.obs_rows(self.row_order())))
            inputs[STATE] = state_CS = state_RS[at_C]
            inputs[RESETS] = torch.zeros_like(state_CS[:, 0], dtype=torch.bool)
        return evaluator.values(inputs)

    def next_value(self, value_T1N: Floats, final_value_C: Tensor) -> Floats:
        """Return the value of what each step truly led to, [T, N]."""
        next_value_TN = value_T1N[1:].copy()
        if len(final_value_C):
            next_value_TN[self.truncated_TN & self.valid_TN] = final_value_C.numpy(force=True)
        return next_value_TN


def approximate_kl(log_ratio: Tensor, weight: Tensor | None = None) -> Tensor:
    """Mean of (r - 1) - log r: unbiased for KL(old, new), and never negative (Schulman 2020)."""
    return mean(log_ratio.expm1() - log_ratio, weight)
