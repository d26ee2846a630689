"""Memories of recurrent networks: a GRU and an LSTM with one function for steps and sequences.

    states_TNS = memory(features_TNF, state_NS, resets_TN)     # T = 1 is one step of an actor
    memory.read(states_TNS)                                    # [T, N, H], for the next layer

The state of an environment is one flat array: h for a GRU, h and c side by side for an LSTM. It is
forgotten before the rows that `resets_TN` marks.

A sequence is differentiated by hand: its backward pass computes the gradients of the weights for
all rows at once, where automatic differentiation adds them up row by row. tests/numerics compares
both with PyTorch's cells.

T: time, N: environments, F: features, H: width of the memory, G: gates of all units, S: numbers of
a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

KEEP = 1.0
"""Bias of the gates that keep the past, so that a memory begins by remembering (Jozefowicz et al.
2015)."""


class _Memory(nn.Module):
    """The parameters of a memory. Weights are orthogonal, gate by gate; biases are 0, but for the
    first gate, which keeps the past."""

    num_gates: ClassVar[int]
    numbers_per_unit: ClassVar[int]
    sequence: ClassVar[type[torch.autograd.Function]]

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
        self.bias.detach()[:size].fill_(KEEP)

    def forward(self, features_TNF: Tensor, state_NS: Tensor, resets_TN: Tensor) -> Tensor:
        """Return the state after each row, [T, N, S]."""
        gates_TNG = F.linear(features_TNF, self.weight_input, self.bias)
        keeps_TN1 = (~resets_TN)[..., None].float()
        given = (gates_TNG, state_NS, keeps_TN1, self.weight_state, *self._more())
        states_TNS: Tensor
        if torch.is_grad_enabled():
            states_TNS = self.sequence.apply(*given)  # type: ignore[no-untyped-call]
        else:
            states_TNS = self.sequence.forward(None, *given)
        return states_TNS

    def _more(self) -> tuple[Tensor, ...]:
        """Return the parameters of the sequence beside weight_state."""
        return ()

    def read(self, states: Tensor) -> Tensor:
        """Return the part of states that the rest of the network sees, [..., H]."""
        return states[..., : self.size]


def _keep(
    ctx: Any, before: list[Tensor], saved: Sequence[tuple[Tensor, ...]], *given: Tensor
) -> None:
    """Keep what the backward pass reads: the states before the rows, what each row computed, and
    what was given. ctx: None where nothing is differentiated."""
    if ctx is not None:
        of_rows = (torch.stack(parts) for parts in zip(*saved, strict=True))
        ctx.save_for_backward(torch.stack(before), *of_rows, *given)


class _GRUSequence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        gates_TNG: Tensor,
        state_NS: Tensor,
        keeps_TN1: Tensor,
        weight_GH: Tensor,
        bias_H: Tensor,
    ) -> Tensor:
        size = weight_GH.shape[1]
        weight_HG, bias_G = weight_GH.t(), F.pad(bias_H, (2 * size, 0))
        h_NH = state_NS
        before, saved, states = [], [], []
        for gates_NG, keep_N1 in zip(gates_TNG, keeps_TN1, strict=True):
            h_NH = h_NH * keep_N1
            before.append(h_NH)
            more_NG = torch.addmm(bias_G, h_NH, weight_HG)
            zr = torch.sigmoid(gates_NG[:, : 2 * size] + more_NG[:, : 2 * size])
            recalled_NH = more_NG[:, 2 * size :]
            n_NH = torch.tanh(torch.addcmul(gates_NG[:, 2 * size :], zr[:, size:], recalled_NH))
            h_NH = torch.lerp(n_NH, h_NH, zr[:, :size])
            saved.append((zr, n_NH, recalled_NH))
            states.append(h_NH)
        _keep(ctx, before, saved, keeps_TN1, weight_GH)
        return torch.stack(states)

    @staticmethod
    def backward(ctx: Any, gradient_TNH: Tensor) -> tuple[Tensor | None, ...]:
        before_TNH, zr, n_TNH, recalled_TNH, keeps_TN1, weight_GH = ctx.saved_tensors
        z_TNH, r_TNH = zr.chunk(2, 2)
        # The gradient of each gate by that of the state after the row.
        slope_n = (1.0 - z_TNH) * (1.0 - n_TNH.square())
        slope_r = slope_n * recalled_TNH * (r_TNH - r_TNH.square())
        slope_z = (before_TNH - n_TNH) * (z_TNH - z_TNH.square())
        slopes_TN3H = torch.stack([slope_z, slope_r, slope_n * r_TNH], 2)
        more_TN3H = torch.empty_like(slopes_TN3H)
        total_NH = torch.zeros_like(before_TNH[0])
        totals = []
        for t in range(len(n_TNH) - 1, -1, -1):
            total_NH = total_NH + gradient_TNH[t]
            totals.append(total_NH)
            torch.mul(slopes_TN3H[t], total_NH[:, None], out=more_TN3H[t])
            total_NH = torch.addmm(total_NH * z_TNH[t], more_TN3H[t].flatten(1), weight_GH)
            total_NH = total_NH * keeps_TN1[t]
        totals.reverse()
        gates_TN3H = more_TN3H.clone()
        gates_TN3H[:, :, 2] = torch.stack(totals) * slope_n
        more_RG = more_TN3H.flatten(0, 1).flatten(1)
        weight_gradient_GH = more_RG.t() @ before_TNH.flatten(0, 1)
        bias_gradient_H = more_TN3H[:, :, 2].sum((0, 1))
        return gates_TN3H.flatten(2), total_NH, None, weight_gradient_GH, bias_gradient_H


class GRU(_Memory):
    """A gated recurrent unit (Cho et al. 2014), in the form that cuDNN computes.

    z = sigmoid(W_z x + U_z h + b_z),  r = sigmoid(W_r x + U_r h + b_r)
    n = tanh(W_n x + b_n + r * (U_n h + c_n)),  h' = n + z (h - n)
    """

    num_gates = 3
    numbers_per_unit = 1
    sequence = _GRUSequence

    def __init__(self, num_features: int, size: int) -> None:
        super().__init__(num_features, size)
        self.bias_recalled = nn.Parameter(torch.zeros(size))

    def _more(self) -> tuple[Tensor, ...]:
        return (self.bias_recalled,)


class _LSTMSequence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, gates_TNG: Tensor, state_NS: Tensor, keeps_TN1: Tensor, weight_GH: Tensor
    ) -> Tensor:
        size = weight_GH.shape[1]
        weight_HG = weight_GH.t()
        before, saved, states = [], [], []
        for gates_NG, keep_N1 in zip(gates_TNG, keeps_TN1, strict=True):
            state_NS = state_NS * keep_N1
            before.append(state_NS)
            sums_NG = torch.addmm(gates_NG, state_NS[:, :size], weight_HG)
            fio = torch.sigmoid(sums_NG[:, : 3 * size])
            g_NH = torch.tanh(sums_NG[:, 3 * size :])
            f_NH, i_NH, o_NH = torch.chunk(fio, 3, 1)
            c_NH = torch.addcmul(f_NH * state_NS[:, size:], i_NH, g_NH)
            seen_NH = torch.tanh(c_NH)
            state_NS = torch.cat([o_NH * seen_NH, c_NH], 1)
            saved.append((fio, g_NH, seen_NH))
            states.append(state_NS)
        _keep(ctx, before, saved, keeps_TN1, weight_GH)
        return torch.stack(states)

    @staticmethod
    def backward(ctx: Any, gradient_TNS: Tensor) -> tuple[Tensor | None, ...]:
        before_TNS, fio, g_TNH, seen_TNH, keeps_TN1, weight_GH = ctx.saved_tensors
        f_TNH, i_TNH, o_TNH = fio.chunk(3, 2)
        h_before_TNH, c_before_TNH = before_TNS.chunk(2, 2)
        # The gradients of the gates: of o by that of h, of the others by that of c.
        slope_f = c_before_TNH * (f_TNH - f_TNH.square())
        slope_i = g_TNH * (i_TNH - i_TNH.square())
        slope_g = i_TNH * (1.0 - g_TNH.square())
        slope_o = seen_TNH * (o_TNH - o_TNH.square())
        slope_c = o_TNH * (1.0 - seen_TNH.square())
        slopes_TN4H = torch.stack([slope_f, slope_i, slope_o, slope_g], 2)
        gates_TN4H = torch.empty_like(slopes_TN4H)
        carried_NS = torch.zeros_like(before_TNS[0])
        for t in range(len(g_TNH) - 1, -1, -1):
            h_NH, c_NH = (carried_NS + gradient_TNS[t]).chunk(2, 1)
            c_NH = torch.addcmul(c_NH, h_NH, slope_c[t])
            totals_N4H = torch.stack([c_NH, c_NH, h_NH, c_NH], 1)
            torch.mul(slopes_TN4H[t], totals_N4H, out=gates_TN4H[t])
            through_NH = gates_TN4H[t].flatten(1) @ weight_GH
            carried_NS = torch.cat([through_NH, c_NH * f_TNH[t]], 1) * keeps_TN1[t]
        gates_TNG = gates_TN4H.flatten(2)
        weight_gradient_GH = gates_TNG.flatten(0, 1).t() @ h_before_TNH.flatten(0, 1)
        return gates_TNG, carried_NS, None, weight_gradient_GH


class LSTM(_Memory):
    """A long short-term memory (Hochreiter and Schmidhuber 1997; Gers et al. 2000).

    f, i, o = sigmoid(W x + U h + b),  g = tanh(W_g x + U_g h + b_g)
    c' = f c + i g,  h' = o tanh(c')
    """

    num_gates = 4
    numbers_per_unit = 2
    sequence = _LSTMSequence


Memory: TypeAlias = GRU | LSTM
MEMORIES: dict[str, type[Memory]] = {"gru": GRU, "lstm": LSTM}
