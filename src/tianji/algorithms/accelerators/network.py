"""The gradient of a StackedNet in closed form: a fifth of the time of automatic differentiation.

Forward:   x_0 = features, x_l+1 = act(x_l W_l + b_l), output_k = V_k x_L[k]' + c_k
Backward:  dV_k = g_k x_L[k],  dc_k = sum_rows g_k,  dx_L[k] = g_k' V_k
           e_l = dx_l+1 * act'(x_l+1),  dW_l = x_l' e_l,  db_l = sum_rows e_l,  dx_l = e_l W_l'

    network = ClosedNetwork(net)
    outputs_AB, tape = network.forward(network.features(obs), num_trained)
    network.backward(tape, *gradients_AB)              # fills the module's flat gradient

Layers use the same memory in every call, with all views of it made beforehand, and gradients are
written straight into the flat gradient: an update is little more than the products above. A tape is
valid until the next forward().

Outputs and their gradients have the rows last, [A, B]: losses then run over contiguous memory
(log-softmax of 256 x 2: 1.5 instead of 7 microseconds).

K: networks, B: rows, F: features or width of a layer, A: outputs of one network.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tianji.algorithms.accelerators.products import add_product, multiply
from tianji.models.networks.recurrent import RecurrentNet
from tianji.models.networks.stacked import StackedNet
from tianji.types import Array

MAX_VIEWS = 8
"""Numbers of rows whose views are kept; unrolls with reset rows always bring new ones."""


@dataclass(frozen=True)
class InPlaceActivation:
    """One activation for tensors and arrays whose memory is used again."""

    bind: Callable[[Tensor], Callable[[], object]]
    """Return a function that activates this very tensor."""
    on_array: Callable[[Array], object]
    gradient: Callable[[Tensor, Tensor], object]
    """(gradient, result): turn the result's gradient into the argument's, in place. A fresh tensor
    costs more than the arithmetic: the allocator returns memory of this size every time."""


def _bind_tanh(x: Tensor) -> Callable[[], object]:
    # NumPy's tanh takes 13 microseconds for 2 x 256 x 64 floats, torch's 84 (2.13, one thread).
    array = x.numpy()
    return partial(np.tanh, array, array)


def _elu_array(x: Array) -> None:
    np.copyto(x, np.expm1(x), where=x < 0.0)


aten = torch.ops.aten

IN_PLACE: dict[str, InPlaceActivation] = {
    "tanh": InPlaceActivation(
        _bind_tanh,
        lambda x: np.tanh(x, out=x),
        lambda gradient, result: aten.tanh_backward.grad_input(
            gradient, result, grad_input=gradient
        ),
    ),
    "relu": InPlaceActivation(
        lambda x: partial(torch.relu_, x),
        lambda x: np.maximum(x, np.float32(0.0), out=x),
        lambda gradient, result: aten.threshold_backward.grad_input(
            gradient, result, 0.0, grad_input=gradient
        ),
    ),
    "elu": InPlaceActivation(
        lambda x: partial(F.elu, x, inplace=True),
        _elu_array,
        lambda gradient, result: aten.elu_backward.grad_input(
            gradient, 1.0, 1.0, 1.0, True, result, grad_input=gradient
        ),
    ),
}
"""GELU is missing: its derivative needs the argument."""


def has_closed_form(net: nn.Module) -> bool:
    """Return whether a network is a small one on a CPU: no convolutions, no memory, a simple
    activation."""
    return (
        isinstance(net, StackedNet)
        and not isinstance(net, RecurrentNet)
        and not net.encoder.is_learned
        and net.activation in IN_PLACE
        and net.outputs[0].weight.device.type == "cpu"
    )


class _Layer(NamedTuple):
    """Views of a layer's parameters, and of their gradients in the flat vector."""

    weight: Tensor
    bias: Tensor
    weight_gradient: Tensor
    bias_gradient: Tensor
    weight_transposed: Tensor


class _Views(NamedTuple):
    """The memory of one hidden layer, for one number of rows.

    y: the layer's result;  activate: y <- act(y);  trained: the rows of y that get a gradient;
    e: scratch memory for that gradient
    """

    y_KBF: Tensor
    y_FB: tuple[Tensor, ...]
    activate: Callable[[], object]
    trained_KBF: Tensor
    trained_KFB: Tensor
    trained_BF: tuple[Tensor, ...]
    e_KBF: Tensor
    e_BF: tuple[Tensor, ...]


class Tape(NamedTuple):
    """What forward() leaves for backward()."""

    x_KBF: Tensor
    layers: list[_Views]


class ClosedNetwork:
    """A StackedNet with forward and backward passes in closed form. The module must be flat."""

    def __init__(self, net: StackedNet) -> None:
        self._encoder = net.encoder
        self._activation = IN_PLACE[net.activation]
        self._hidden = [_make_layer(*pair) for pair in zip(net.weights, net.biases, strict=True)]
        outputs = [cast(nn.Linear, output) for output in net.outputs]
        self._outputs = [_make_layer(output.weight, output.bias) for output in outputs]
        self._memory = torch.empty(0)
        self._views: dict[tuple[int, int], list[_Views]] = {}

    def features(self, obs: Mapping[str, Tensor]) -> Tensor:
        """Compute what does not depend on the parameters, for all rows at once: [B, F]."""
        features_BF: Tensor = self._encoder(obs)
        return features_BF

    def evaluate(self, x_BF: Tensor) -> tuple[Tensor, ...]:
        """Return the outputs [A, B] of each network, without a tape."""
        return self.forward(x_BF, 0)[0]

    def forward(self, x_BF: Tensor, num_trained: int) -> tuple[tuple[Tensor, ...], Tape]:
        """Return the outputs [A, B]; the first num_trained rows can get a gradient."""
        layers = self._views_for(len(x_BF), num_trained)
        tape = Tape(x_BF.expand(len(self._outputs), -1, -1), layers)
        x_KBF = tape.x_KBF
        for layer, views in zip(self._hidden, layers, strict=True):
            add_product(layer.bias, x_KBF, layer.weight, views.y_KBF)
            views.activate()
            x_KBF = views.y_KBF
        tops_FB = layers[-1].y_FB if layers else x_KBF.mT.unbind(0)
        tops = zip(self._outputs, tops_FB, strict=True)
        outputs = tuple([torch.addmm(layer.bias, layer.weight, x_FB) for layer, x_FB in tops])
        return outputs, tape

    def backward(self, tape: Tape, *gradients_AB: Tensor, num_counted: int | None = None) -> None:
        """Set the gradients of all parameters from those of the outputs' trained rows.

        num_counted: the parameters get those of the first so many rows alone; the others are for
        input_gradient()."""
        x_KBF, layers = tape
        num_trained = gradients_AB[0].shape[1]
        if x_KBF.shape[1] != num_trained:
            x_KBF = x_KBF[:, :num_trained]
        tops_BF = layers[-1].trained_BF if layers else x_KBF.unbind(0)
        for layer, gradient_AB, x_BF in zip(self._outputs, gradients_AB, tops_BF, strict=True):
            counted_AB, counted_BF = gradient_AB, x_BF
            if num_counted is not None:
                counted_AB, counted_BF = gradient_AB[:, :num_counted], x_BF[:num_counted]
            torch.mm(counted_AB, counted_BF, out=layer.weight_gradient)
            torch.sum(counted_AB, 1, out=layer.bias_gradient)
        if not layers:
            return
        tops = zip(self._outputs, gradients_AB, layers[-1].e_BF, strict=True)
        for layer, gradient_AB, e_BF in tops:
            torch.mm(gradient_AB.t(), layer.weight, out=e_BF)
        for index in range(len(layers) - 1, -1, -1):
            layer, views = self._hidden[index], layers[index]
            self._activation.gradient(views.e_KBF, views.trained_KBF)
            below_KFB, e_KBF = layers[index - 1].trained_KFB if index else x_KBF.mT, views.e_KBF
            if num_counted is not None:
                below_KFB, e_KBF = below_KFB[..., :num_counted], e_KBF[:, :num_counted]
            multiply(below_KFB, e_KBF, layer.weight_gradient)
            torch.sum(e_KBF, 1, keepdim=True, out=layer.bias_gradient)
            if index:
                multiply(views.e_KBF, layer.weight_transposed, layers[index - 1].e_KBF)

    def input_gradient(self, tape: Tape, first_row: int, first_feature: int) -> Tensor:
        """Return the gradient of the last features in the last trained rows after backward(), added
        up over all networks: [F, B]. Networks without hidden layers have none."""
        e_KBF = tape.layers[0].e_KBF[:, first_row:]
        return torch.bmm(self._hidden[0].weight[:, first_feature:], e_KBF.mT).sum(0)

    def _views_for(self, num_rows: int, num_trained: int) -> list[_Views]:
        views = self._views.get((num_rows, num_trained))
        if views is None:
            if len(self._views) >= MAX_VIEWS:
                self._views.clear()
            views = self._views[num_rows, num_trained] = self._make_views(num_rows, num_trained)
        return views

    def _make_views(self, num_rows: int, num_trained: int) -> list[_Views]:
        """Lay layers and their gradients out one after the other, in one memory for all sizes."""
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
                self._memory = torch.empty(sum(sizes))
        parts = torch.split(self._memory[: sum(sizes)], sizes)
        scratch = [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]
        return [
            _make_views(y_KBF, e_KBF, self._activation)
            for y_KBF, e_KBF in zip(scratch[::2], scratch[1::2], strict=True)
        ]


def _make_views(y_KBF: Tensor, e_KBF: Tensor, activation: InPlaceActivation) -> _Views:
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
