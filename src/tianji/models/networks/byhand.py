"""The gradient of a StackedNet, written down: a fifth of the time of automatic differentiation.

Forward:   x_0 = features, x_l+1 = act(x_l W_l + b_l), output_k = V_k x_L[k]' + c_k
Backward:  dV_k = g_k x_L[k],  dc_k = sum_rows g_k,  dx_L[k] = g_k' V_k
           e_l = dx_l+1 * act'(x_l+1),  dW_l = x_l' e_l,  db_l = sum_rows e_l,  dx_l = e_l W_l'

Layers live in memory that is used again, with every view of it made beforehand, and gradients are
written straight into the flat gradient: an update is little more than the products above.

K: networks, B: rows, F: features or width of a layer, A: outputs of one network.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from tianji.models.networks.activation import BY_HAND, ByHand
from tianji.models.networks.stacked import StackedNet

FEATURES = "features"
MAX_VIEWS = 8
"""Numbers of rows whose views are kept; reset rows in unrolls bring ever new ones."""


class _Layer(NamedTuple):
    """Views of a layer's parameters, and of their gradients in the flat vector."""

    weight: Tensor
    bias: Tensor
    weight_gradient: Tensor
    bias_gradient: Tensor
    weight_transposed: Tensor


class _Views(NamedTuple):
    """The memory of one hidden layer, for one number of rows."""

    y_KBF: Tensor
    y_FB: tuple[Tensor, ...]
    activate: Callable[[], object]
    """y <- act(y)."""
    trained_KBF: Tensor
    """The rows of y that get a gradient."""
    trained_KFB: Tensor
    trained_BF: tuple[Tensor, ...]
    e_KBF: Tensor
    """Room for that gradient."""
    e_BF: tuple[Tensor, ...]


class StackedGradient:
    """A StackedNet as a GradientNet (see gradient.py). The module must be flat already."""

    def __init__(self, net: StackedNet) -> None:
        self._encoder = net.encoder
        self._activation = BY_HAND[net.activation]
        self._hidden = [_make_layer(*pair) for pair in zip(net.weights, net.biases, strict=True)]
        outputs = [cast(nn.Linear, output) for output in net.outputs]
        self._outputs = [_make_layer(output.weight, output.bias) for output in outputs]
        self._memory = torch.empty(0)
        self._views: dict[tuple[int, int], list[_Views]] = {}
        self._now: list[_Views] = []
        self._x_KBF = torch.empty(0)

    def guard(self) -> AbstractContextManager[object]:
        """torch may leave out the bookkeeping that only automatic gradients need."""
        return torch.inference_mode()

    def prepare(self, obs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {FEATURES: self._encoder(obs)}

    def evaluate(self, inputs: dict[str, Tensor]) -> tuple[Tensor, ...]:
        return self.forward(inputs, 0)

    def forward(self, inputs: dict[str, Tensor], num_rows: int) -> tuple[Tensor, ...]:
        x_BF = inputs[FEATURES]
        self._now = self._views_for(len(x_BF), num_rows)
        self._x_KBF = x_KBF = x_BF.expand(len(self._outputs), -1, -1)
        for layer, views in zip(self._hidden, self._now, strict=True):
            torch.baddbmm(layer.bias, x_KBF, layer.weight, out=views.y_KBF)
            views.activate()
            x_KBF = views.y_KBF
        tops_FB = self._now[-1].y_FB if self._now else x_KBF.mT.unbind(0)
        tops = zip(self._outputs, tops_FB, strict=True)
        return tuple([torch.addmm(layer.bias, layer.weight, x_FB) for layer, x_FB in tops])

    def backward(self, *gradients_AB: Tensor) -> None:
        x_KBF, num_trained = self._x_KBF, gradients_AB[0].shape[1]
        if x_KBF.shape[1] != num_trained:
            x_KBF = x_KBF[:, :num_trained]
        tops_BF = self._now[-1].trained_BF if self._now else x_KBF.unbind(0)
        for layer, gradient_AB, x_BF in zip(self._outputs, gradients_AB, tops_BF, strict=True):
            torch.mm(gradient_AB, x_BF, out=layer.weight_gradient)
            torch.sum(gradient_AB, 1, out=layer.bias_gradient)
        if not self._now:
            return
        tops = zip(self._outputs, gradients_AB, self._now[-1].e_BF, strict=True)
        for layer, gradient_AB, e_BF in tops:
            torch.mm(gradient_AB.t(), layer.weight, out=e_BF)
        for index in range(len(self._hidden) - 1, -1, -1):
            layer, views = self._hidden[index], self._now[index]
            self._activation.gradient(views.e_KBF, views.trained_KBF)
            below_KFB = self._now[index - 1].trained_KFB if index else x_KBF.mT
            torch.bmm(below_KFB, views.e_KBF, out=layer.weight_gradient)
            torch.sum(views.e_KBF, 1, keepdim=True, out=layer.bias_gradient)
            if index:
                torch.bmm(views.e_KBF, layer.weight_transposed, out=self._now[index - 1].e_KBF)

    def _views_for(self, num_rows: int, num_trained: int) -> list[_Views]:
        views = self._views.get((num_rows, num_trained))
        if views is None:
            if len(self._views) >= MAX_VIEWS:
                self._views.clear()
            views = self._views[num_rows, num_trained] = self._make_views(num_rows, num_trained)
        return views

    def _make_views(self, num_rows: int, num_trained: int) -> list[_Views]:
        """Layers and their gradients, one after the other in the same memory for all sizes."""
        num_nets = len(self._outputs)
        shapes = [
            (num_nets, rows, layer.weight.shape[2])
            for layer in self._hidden
            for rows in (num_rows, num_trained)
        ]
        sizes = [math.prod(shape) for shape in shapes]
        if sum(sizes) > len(self._memory):
            self._views.clear()
            with torch.inference_mode(False):  # else it could not be written to outside of it
                self._memory = torch.empty(sum(sizes), device=self._outputs[0].weight.device)
        parts = torch.split(self._memory[: sum(sizes)], sizes)
        rooms = [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]
        return [
            _make_views(y_KBF, e_KBF, self._activation)
            for y_KBF, e_KBF in zip(rooms[::2], rooms[1::2], strict=True)
        ]


def _make_views(y_KBF: Tensor, e_KBF: Tensor, activation: ByHand) -> _Views:
    trained_KBF = y_KBF[:, : e_KBF.shape[1]]
    return _Views(
        y_KBF=y_KBF,
        y_FB=y_KBF.mT.unbind(0),
        activate=activation.bind(y_KBF),
        trained_KBF=trained_KBF,
        trained_KFB=trained_KBF.mT,
        trained_BF=trained_KBF.unbind(0),
        e_KBF=e_KBF,
        e_BF=e_KBF.unbind(0),
    )


def _make_layer(weight: Tensor, bias: Tensor) -> _Layer:
    assert weight.grad is not None and bias.grad is not None, "flatten() the module first"
    value, gradient = bias.detach(), bias.grad
    shaped = value if bias.ndim > 1 else value[:, None]
    return _Layer(weight.detach(), shaped, weight.grad, gradient, weight.detach().mT)
