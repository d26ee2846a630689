"""The closed form of a network against automatic differentiation."""

import pytest
import torch
from gymnasium import spaces

from tests.fakes.experience import TREE, VECTOR
from tianji.algorithms.accelerators.network import IN_PLACE, ClosedNetwork, has_closed_form
from tianji.envs.spaces import observation_leaves
from tianji.models.networks.encoder import Encoder
from tianji.models.networks.stacked import StackedNet
from tianji.models.tensors import flatten


def net(hidden=(8, 6), activation="tanh", widths=(3, 1), space=VECTOR):
    torch.manual_seed(0)
    encoder = Encoder(observation_leaves(space), normalize=False, clip=10.0)
    made = StackedNet(encoder, hidden, activation, widths, [1.0] * len(widths))
    for bias in [*made.biases, *(output.bias for output in made.outputs)]:
        torch.nn.init.normal_(bias)
    return made, flatten(made)


def both(made, flat, rows, num_trained):
    """Outputs and flat gradients of the two ways, for the same random loss."""
    x, network = torch.randn(rows, 4), ClosedNetwork(made)
    flat.gradient_P.fill_(7.0)
    with torch.inference_mode():
        outputs, tape = network.forward(network.features({"": x}), num_trained)
        slopes = [torch.randn(len(output), num_trained) for output in outputs]
        network.backward(tape, *slopes)
    closed = flat.gradient_P.clone()
    automatic = made({"": x})
    pairs = zip(automatic, slopes, strict=True)
    loss = sum((output[:num_trained] * slope.clone().t()).sum() for output, slope in pairs)
    gradients = torch.autograd.grad(loss, list(made.parameters()))
    expected = torch.cat([gradient.reshape(-1) for gradient in gradients])
    return outputs, automatic, closed, expected


@pytest.mark.parametrize("activation", IN_PLACE)
@pytest.mark.parametrize("hidden", [(), (8,), (8, 6), (5, 9, 7)])
@pytest.mark.parametrize("widths", [(3,), (3, 1)])
@pytest.mark.parametrize("num_trained", [20, 12])
def test_the_closed_form_equals_autograd(activation, hidden, widths, num_trained):
    """Rows after num_trained are evaluated and not trained."""
    made, flat = net(hidden, activation, widths)
    outputs, automatic, closed, expected = both(made, flat, 20, num_trained)
    for mine, theirs in zip(outputs, automatic, strict=True):
        torch.testing.assert_close(mine.t().clone(), theirs.detach())
    torch.testing.assert_close(closed, expected)


@pytest.mark.parametrize("hidden", [(8,), (8, 6)])
def test_rows_that_do_not_count_give_gradients_to_their_inputs_alone(hidden):
    made, flat = net(hidden, "tanh", (1, 1))
    x, slopes = torch.randn(20, 4), torch.randn(2, 1, 20)
    network = ClosedNetwork(made)
    with torch.inference_mode():
        _, tape = network.forward(network.features({"": x}), 20)
        network.backward(tape, *slopes, num_counted=12)
        inputs = network.input_gradient(tape, 12, 1).clone()
    x.requires_grad_(True)
    rows = sum(
        (output[:, 0] * slope[0]) for output, slope in zip(made({"": x}), slopes, strict=True)
    )
    counted = torch.autograd.grad(rows[:12].sum(), list(made.parameters()), retain_graph=True)
    expected = torch.cat([gradient.reshape(-1) for gradient in counted])
    torch.testing.assert_close(flat.gradient_P, expected)
    (of_inputs,) = torch.autograd.grad(rows[12:].sum(), x)
    torch.testing.assert_close(inputs.t(), of_inputs[12:, 1:])


def test_gradient_is_the_slope_of_finite_differences():
    made, flat = net((8,), "tanh", (2,))
    network = ClosedNetwork(made)
    inputs = network.features({"": torch.randn(6, 4)})
    weight = torch.randn(2, 6)
    _, tape = network.forward(inputs, 6)
    network.backward(tape, weight)
    gradient = flat.gradient_P.clone()
    for index in range(0, len(gradient), 7):
        losses = []
        for step in (1e-2, -2e-2):
            flat.vector_P[index] += step
            losses.append(float((network.evaluate(inputs)[0].double() * weight).sum()))
        flat.vector_P[index] += 1e-2
        slope = (losses[0] - losses[1]) / 2e-2
        assert float(gradient[index]) == pytest.approx(slope, rel=0.02, abs=0.01)


def test_memory_is_right_when_the_number_of_rows_changes_back_and_forth():
    made, flat = net()
    network = ClosedNetwork(made)
    for rows in (5, 40, 3, 40, *range(2, 20), 5):
        x = torch.randn(rows, 4)
        outputs, tape = network.forward(network.features({"": x}), rows)
        network.backward(tape, *(torch.ones_like(y) for y in outputs))
        expected = torch.autograd.grad(sum(y.sum() for y in made({"": x})), made.parameters())
        torch.testing.assert_close(flat.gradient_P, torch.cat([g.reshape(-1) for g in expected]))


def test_memory_made_in_inference_mode_works_outside_of_it():
    made, _ = net()
    network = ClosedNetwork(made)
    inputs = network.features({"": torch.randn(5, 4)})
    with torch.inference_mode():
        inside = network.evaluate(inputs)
    torch.testing.assert_close(inside[0].clone(), network.evaluate(inputs)[0])


@pytest.mark.parametrize(
    ("space", "activation", "is_closed"),
    [(VECTOR, "tanh", True), (VECTOR, "gelu", False), (TREE, "tanh", False)],
)
def test_networks_with_convolutions_or_gelu_are_differentiated_automatically(
    space, activation, is_closed
):
    made, _ = net(activation=activation, space=space)
    assert has_closed_form(made) is is_closed


def test_a_network_on_another_device_is_differentiated_automatically():
    made, _ = net()
    assert not has_closed_form(made.to("meta"))


def test_one_network_alone_gives_what_all_give_together():
    made, _ = net(space=spaces.Box(-1, 1, (4,)))
    obs = {"": torch.randn(5, 4)}
    for index, together in enumerate(made(obs)):
        torch.testing.assert_close(made.one(obs, index), together)
