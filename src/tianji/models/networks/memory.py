"""Memories of recurrent networks: a GRU and an LSTM with one function for steps and sequences.

    states_TNS = memory(features_TNF, state_NS, resets_TN)     # T = 1 is one step of an actor
    memory.read(states_TNS)                                    # [T, N, H], for the next layer

The state of an environment is one flat array: h for a GRU, h and c side by side for an LSTM. It is
forgotten before the rows that `resets_TN` marks.

T: time, N: environments, F: features, H: width of the memory, S: numbers of a state.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

KEEP = 1.0
"""Bias of the gates that keep the past, so that a memory begins by remembering (Jozefowicz et al.
2015)."""


class _Memory(nn.Module):
    """The parameters of a memory. Weights are orthogonal, gate by gate; biases are 0."""

    num_gates: ClassVar[int]
    numbers_per_unit: ClassVar[int]

    def __init__(self, num_features: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.state_size = self.numbers_per_unit * size
        self.weight_input = nn.Parameter(torch.empty(self.num_gates * size, num_features))
        self.weight_state = nn.Parameter(torch.empty(self.num_gates * size, size))
        self.bias = nn.Parameter(torch.zeros(self.num_gates * size))
        for weight in (self.weight_input, self.weight_state):
            for gate in weight.detach().chunk(self.num_gates):
                nn.init.orthogonal_(gate)

    def read(self, states: Tensor) -> Tensor:
        """Return the part of states that the rest of the network sees, [..., H]."""
        return states[..., : self.size]


class GRU(_Memory):
    """A gated recurrent unit (Cho et al. 2014), in the form that cuDNN computes.

    z = sigmoid(W_z x + U_z h + b_z),  r = sigmoid(W_r x + U_r h + b_r)
    n = tanh(W_n x + b_n + r * (U_n h + c_n)),  h' = n + z (h - n)
    """

    num_gates = 3
    numbers_per_unit = 1

    def __init__(self, num_features: int, size: int) -> None:
        super().__init__(num_features, size)
        self.bias_candidate = nn.Parameter(torch.zeros(size))
        self.bias.detach()[:size].fill_(KEEP)

    def forward(self, features_TNF: Tensor, state_NS: Tensor, resets_TN: Tensor) -> Tensor:
        """Return the state after each row, [T, N, S]."""
        size = self.size
        gates_TNG = F.linear(features_TNF, self.weight_input, self.bias)
        weight_HG = self.weight_state.t()
        bias_G = F.pad(self.bias_candidate, (2 * size, 0))
        keeps_TN1 = (~resets_TN)[..., None].float()
        states, h_NH = [], state_NS
        for gates_NG, keep_N1 in zip(gates_TNG, keeps_TN1, strict=True):
            h_NH = h_NH * keep_N1
            more_NG = torch.addmm(bias_G, h_NH, weight_HG)
            zr = torch.sigmoid(gates_NG[:, : 2 * size] + more_NG[:, : 2 * size])
            candidate_NH = torch.tanh(
                torch.addcmul(gates_NG[:, 2 * size :], zr[:, size:], more_NG[:, 2 * size :])
            )
            h_NH = torch.lerp(candidate_NH, h_NH, zr[:, :size])
            states.append(h_NH)
        return torch.stack(states)


class LSTM(_Memory):
    """A long short-term memory (Hochreiter and Schmidhuber 1997; Gers et al. 2000).

    f, i, o = sigmoid(W x + U h + b),  g = tanh(W_g x + U_g h + b_g)
    c' = f c + i g,  h' = o tanh(c')
    """

    num_gates = 4
    numbers_per_unit = 2

    def __init__(self, num_features: int, size: int) -> None:
        super().__init__(num_features, size)
        self.bias.detach()[:size].fill_(KEEP)

    def forward(self, features_TNF: Tensor, state_NS: Tensor, resets_TN: Tensor) -> Tensor:
        """Return the state after each row, [T, N, S]."""
        size = self.size
        gates_TNG = F.linear(features_TNF, self.weight_input, self.bias)
        weight_HG = self.weight_state.t()
        keeps_TN1 = (~resets_TN)[..., None].float()
        states = []
        for gates_NG, keep_N1 in zip(gates_TNG, keeps_TN1, strict=True):
            h_NH, c_NH = torch.chunk(state_NS * keep_N1, 2, 1)
            sums_NG = torch.addmm(gates_NG, h_NH, weight_HG)
            f_NH, i_NH, o_NH = torch.chunk(torch.sigmoid(sums_NG[:, : 3 * size]), 3, 1)
            c_NH = torch.addcmul(f_NH * c_NH, i_NH, torch.tanh(sums_NG[:, 3 * size :]))
            state_NS = torch.cat([o_NH * torch.tanh(c_NH), c_NH], 1)
            states.append(state_NS)
        return torch.stack(states)


Memory: TypeAlias = GRU | LSTM
MEMORIES: dict[str, type[Memory]] = {"gru": GRU, "lstm": LSTM}
