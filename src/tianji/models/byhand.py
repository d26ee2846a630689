"""The gradient of a StackedNet, written down: a quarter of the time of automatic differentiation.

Forward:   x_0 = features, x_l+1 = act(x_l W_l + b_l), output_k = V_k x_L[k] + c_k
Backward:  dV_k = g_k x_L[k],  dx_L[k] = g_k' V_k
           e_l = dx_l+1 * act'(x_l+1),  dW_l = x_l' e_l,  db_l = sum_rows e_l,  dx_l = e_l W_l'

Hidden layers live in one piece of memory that is used again, and gradients are written straight
into the flat gradient, so that an update allocates next to nothing and needs no zeroing.

K: networks, B: rows, F: features, H: width of a layer, A: outputs of one network.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from tianji.models.activation import BY_HAND
from tianji.models.stacked import StackedNet

FEATURES = "features"


class _Parameter(NamedTuple):
    """Views of one parameter and of its gradient in the flat vectors."""

    value: Tensor
    gradient: Tensor


class _Layer(NamedTuple):
    weight: _Parameter
    bias: _Parameter


class StackedGradient:
    """A StackedNet as a GradientNet (see gradient.py). The module must be flat already."""

    def __init__(self, net: StackedNet) -> None:
        self._encoder = net.encoder
        self._activation = BY_HAND[net.activation]
        self._hidden = [
            _Layer(_parameter(weight), _parameter(bias))
            for weight, bias in zip(net.weights, net.biases, strict=True)
        ]
        outputs = [cast(nn.Linear, output) for output in net.outputs]
        self._outputs = [_Layer(_parameter(o.weight), _parameter(o.bias)) for o in outputs]
        self._memory = torch.empty(0)
        self._gradient_memory = torch.empty(0)
        self._x_KBF: list[Tensor] = []

    def prepare(self, obs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {FEATURES: self._encoder(obs)}

    def evaluate(self, inputs: dict[str, Tensor]) -> tuple[Tensor, ...]:
        return self.forward(inputs, 0)

    def forward(self, inputs: dict[str, Tensor], num_rows: int) -> tuple[Tensor, ...]:
        x_BF = inputs[FEATURES]
        if not self._x_KBF or self._x_KBF[0].shape[1] != len(x_BF):
            self._x_KBF = self._allocate(len(x_BF))
        self._x_KBF[0] = x_KBF = x_BF.expand(len(self._outputs), -1, -1)
        for layer, y_KBH in zip(self._hidden, self._x_KBF[1:], strict=True):
            torch.baddbmm(layer.bias.value, x_KBF, layer.weight.value, out=y_KBH)
            self._activation.on_tensor(y_KBH)
            x_KBF = y_KBH
        return tuple(
            torch.addmm(layer.bias.value[:, None], layer.weight.value, x_BF.t())
            for layer, x_BF in zip(self._outputs, x_KBF.unbind(0), strict=True)
        )

    def backward(self, *gradients_AB: Tensor) -> None:
        num_rows = gradients_AB[0].shape[1]
        xs_KBF = self._x_KBF
        if num_rows != xs_KBF[0].shape[1]:
            xs_KBF = [x_KBF[:, :num_rows] for x_KBF in xs_KBF]
        tops = zip(self._outputs, gradients_AB, xs_KBF[-1].unbind(0), strict=True)
        for layer, gradient_AB, x_BF in tops:
            torch.mm(gradient_AB, x_BF, out=layer.weight.gradient)
            torch.sum(gradient_AB, 1, out=layer.bias.gradient)
        if self._hidden:
            self._backward_hidden(gradients_AB, xs_KBF)

    def _backward_hidden(self, gradients_AB: tuple[Tensor, ...], xs_KBF: list[Tensor]) -> None:
        d_KBH = self._room_for_gradient_of(xs_KBF[-1])
        for layer, gradient_AB, d_BH in zip(
            self._outputs, gradients_AB, d_KBH.unbind(0), strict=True
        ):
            torch.mm(gradient_AB.t(), layer.weight.value, out=d_BH)
        for index in range(len(self._hidden) - 1, -1, -1):
            layer, x_KBF, y_KBH = self._hidden[index], xs_KBF[index], xs_KBF[index + 1]
            e_KBH = self._activation.gradient(d_KBH, y_KBH)
            torch.bmm(x_KBF.transpose(1, 2), e_KBH, out=layer.weight.gradient)
            torch.sum(e_KBH, 1, keepdim=True, out=layer.bias.gradient)
            if index:
                d_KBH = self._room_for_gradient_of(x_KBF)
                torch.bmm(e_KBH, layer.weight.value.transpose(1, 2), out=d_KBH)

    def _room_for_gradient_of(self, x_KBF: Tensor) -> Tensor:
        return self._gradient_memory[: x_KBF.numel()].view(x_KBF.shape)

    def _allocate(self, num_rows: int) -> list[Tensor]:
        """Room for the outputs of all hidden layers; the features' place is filled by forward."""
        num_nets = len(self._outputs)
        widths = [layer.weight.value.shape[2] for layer in self._hidden]
        sizes = [num_nets * num_rows * width for width in widths]
        if sum(sizes) > len(self._memory):
            device = self._outputs[0].weight.value.device
            self._memory = torch.empty(sum(sizes), device=device)
            self._gradient_memory = torch.empty(max(sizes), device=device)
        parts = torch.split(self._memory[: sum(sizes)], sizes)
        layers = [part.view(num_nets, num_rows, -1) for part in parts]
        return [torch.empty(0), *layers]


def _parameter(parameter: Tensor) -> _Parameter:
    assert parameter.grad is not None, "flatten() the module first"
    return _Parameter(parameter.detach(), parameter.grad)
