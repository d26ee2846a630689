"""A stack of networks with a memory between the encoder and the hidden layers, which they share.

Sequences lie in rows like other inputs, all environments of a row side by side, together with the
states that the environments begin with:

    inputs = {"": obs_R4, RESETS: resets_R, STATE: state_NS}           # R = T x N
    logits_RA, value_R1 = net(inputs)

T: time, N: environments, R: rows, F: features, A: outputs of one network, S: numbers of a state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext

import torch
from torch import Tensor

from tianji.models.networks.encoder import Encoder
from tianji.models.networks.memory import Memory
from tianji.models.networks.precision import in_precision
from tianji.models.networks.stacked import StackedNet

STATE = "<state>"
"""The input with the state that each environment begins with, [N, S]."""
RESETS = "<resets>"
"""The input that marks the rows before which an environment forgets its state, [R]."""


class RecurrentNet(StackedNet):
    """A StackedNet whose hidden layers see what a memory makes of the features."""

    def __init__(
        self,
        encoder: Encoder,
        memory: Memory,
        hidden: Sequence[int],
        activation: str,
        num_outputs: Sequence[int],
        output_gains: Sequence[float],
    ) -> None:
        super().__init__(encoder, hidden, activation, num_outputs, output_gains, memory.size)
        self.memory = memory

    @in_precision
    def forward(self, obs: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
        """Return the outputs [R, A] of all networks."""
        return self.outputs_of(self.memory.read(self._states(obs)).flatten(0, 1))

    @in_precision
    def states(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Return the state after each row, [T, N, S]."""
        return self._states(inputs)

    @in_precision
    def step(
        self, obs: Mapping[str, Tensor], state_NS: Tensor, index: int
    ) -> tuple[Tensor, Tensor]:
        """Return the output of one of the networks for one row, and the state after it."""
        resets_1N = torch.zeros_like(state_NS[None, :, 0], dtype=torch.bool)
        (after_NS,) = self._remember(self.encoder(obs)[None], state_NS, resets_1N)
        return self.output_of(self.memory.read(after_NS), index), after_NS

    def _states(self, inputs: Mapping[str, Tensor]) -> Tensor:
        features_RF, state_NS = self.encoder(inputs), inputs[STATE]
        shape = (-1, len(state_NS))
        resets_TN = inputs[RESETS].view(shape)
        return self._remember(features_RF.view(*shape, features_RF.shape[1]), state_NS, resets_TN)

    def _remember(self, features_TNF: Tensor, state_NS: Tensor, resets_TN: Tensor) -> Tensor:
        # Errors of a state add up over a sequence: it is float32 in any precision.
        no_autocast = torch.autocast(features_TNF.device.type, enabled=False)
        with no_autocast if self.is_bfloat16 else nullcontext():
            states_TNS: Tensor = self.memory(features_TNF.float(), state_NS, resets_TN)
        return states_TNS
