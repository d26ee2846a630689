"""K networks of the same shape, side by side, computed together.

An actor and a critic (or the two streams of a dueling network) are two MLPs with separate weights.
On networks of this size the number of operations is what costs, so their weights are stacked
[K, in, out] and every layer is one batched product for all K. Only the last layers differ in width.

K: networks, B: rows, F: features, A: outputs of one network.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tianji.models.networks.encoder import Encoder
from tianji.models.networks.precision import Precise, in_precision

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "relu": F.relu,
    "elu": F.elu,
    "gelu": F.gelu,
}


class StackedNet(Precise):
    """An encoder shared by K separate MLPs, each with a linear output of its own width.

    >>> actor_critic = StackedNet(encoder, (64, 64), "tanh", (num_actions, 1), (0.01, 1.0))
    >>> logits_BA, value_B1 = actor_critic({"": obs_B4})
    """

    def __init__(
        self,
        encoder: Encoder,
        hidden: Sequence[int],
        activation: str,
        num_outputs: Sequence[int],
        output_gains: Sequence[float],
        num_features: int | None = None,
    ) -> None:
        """Weights are orthogonal with gain sqrt(2), the outputs' with their own; biases are 0.

        num_features: those that the hidden layers get, where they are not the encoder's own."""
        super().__init__()
        self.encoder = encoder
        self.activation = activation
        self._activate = ACTIVATIONS[activation]
        num_nets = len(num_outputs)
        widths = [num_features or encoder.num_features, *hidden]
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        for num_in, num_out in itertools.pairwise(widths):
            weight_KIO = torch.empty(num_nets, num_in, num_out)
            for weight_IO in weight_KIO:
                nn.init.orthogonal_(weight_IO, math.sqrt(2.0))
            self.weights.append(weight_KIO)
            self.biases.append(torch.zeros(num_nets, 1, num_out))
        self.outputs = nn.ModuleList(nn.Linear(widths[-1], width) for width in num_outputs)
        for output, gain in zip(self.outputs, output_gains, strict=True):
            assert isinstance(output, nn.Linear)
            nn.init.orthogonal_(output.weight, gain)
            nn.init.zeros_(output.bias)

    @in_precision
    def forward(self, obs: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
        """Return the outputs [B, A] of all K networks."""
        return self.outputs_of(self.encoder(obs))

    def outputs_of(self, x_BF: Tensor) -> tuple[Tensor, ...]:
        """Return the outputs of all networks for these features."""
        x_KBF = x_BF.expand(len(self.outputs), -1, -1)
        for weight_KIO, bias_K1O in zip(self.weights, self.biases, strict=True):
            x_KBF = self._activate(torch.baddbmm(bias_K1O, x_KBF, weight_KIO))
        return tuple(output(x_BF) for output, x_BF in zip(self.outputs, x_KBF, strict=True))

    @in_precision
    def one(self, obs: Mapping[str, Tensor], index: int) -> Tensor:
        """Return the output of one of the networks, at the cost of one."""
        return self.output_of(self.encoder(obs), index)

    def output_of(self, x_BF: Tensor, index: int) -> Tensor:
        """Return the output of one of the networks for these features."""
        for weight_KIO, bias_K1O in zip(self.weights, self.biases, strict=True):
            x_BF = self._activate(F.linear(x_BF, weight_KIO[index].t(), bias_K1O[index, 0]))
        output: Tensor = self.outputs[index](x_BF)
        return output


def has_convolutions(module: nn.Module) -> bool:
    """Return whether a module holds a network of ours that takes images."""
    return any(isinstance(net, StackedNet) and net.encoder.is_learned for net in module.modules())
