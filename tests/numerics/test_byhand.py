"""Gradients written by hand against automatic ones, for every network that has them."""

import pytest
import torch
from gymnasium import spaces

from tests.fakes.experience import TREE, VECTOR
from tianji.envs.spaces import observation_leaves
from tianji.models.flat import flatten
from tianji.models.networks.activation import BY_HAND
from tianji.models.networks.byhand import StackedGradient
from tianji.models.networks.encoder import Encoder
from tianji.models.networks.gradient import AutogradNet, build_gradient_net
from tianji.models.networks.stacked import StackedNet


def net(hidden=(8, 6), activation="tanh", widths=(3, 1), space=VECTOR):
    torch.manual_seed(0)
    encoder = Encoder(observation_leaves(space), normalize=False, clip=10.0)
    made = StackedNet(encoder, hidden, activation, widths, [1.0] * len(widths))
    for bias in [*made.biases, *(output.bias for output in made.outputs)]:
        torch.nn.init.normal_(bias)
    return made, flatten(made)


def both(made, flat, rows, num_rows):
    """Outputs and flat gradients of the two ways, for the same random loss."""
    obs = {"": torch.randn(rows, 4)}
    results = []
    for network in (StackedGradient(made), AutogradNet(made, flat)):
        flat.gradient_P.fill_(7.0)
        with network.guard():
            outputs = network.forward(network.prepare(obs), num_rows)
            torch.manual_seed(1)
            network.backward(*(torch.randn(len(x), num_rows) for x in outputs))
        results.append(([x.clone() for x in outputs], flat.gradient_P.clone()))
    return results


@pytest.mark.parametrize("activation", BY_HAND)
@pytest.mark.parametrize("hidden", [(), (8,), (8, 6), (5, 9, 7)])
@pytest.mark.parametrize("widths", [(3,), (3, 1)])
def test_by_hand_equals_automatic(activation, hidden, widths):
    by_hand, automatic = both(*net(hidden, activation, widths), rows=20, num_rows=20)
    for mine, theirs in zip(by_hand[0], automatic[0], strict=True):
        torch.testing.assert_close(mine, theirs)
    torch.testing.assert_close(by_hand[1], automatic[1])


@pytest.mark.parametrize("hidden", [(), (8, 6)])
def test_rows_after_num_rows_are_evaluated_and_not_trained(hidden):
    by_hand, automatic = both(*net(hidden), rows=20, num_rows=12)
    assert by_hand[0][0].shape == (3, 20)
    torch.testing.assert_close(by_hand[0], automatic[0])
    torch.testing.assert_close(by_hand[1], automatic[1])


def test_gradient_is_the_slope_of_finite_differences():
    made, flat = net((8,), "tanh", (2,))
    network = StackedGradient(made)
    inputs = network.prepare({"": torch.randn(6, 4)})
    weight = torch.randn(2, 6)
    network.forward(inputs, 6)
    network.backward(weight)
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
    network = StackedGradient(made)
    for rows in (5, 40, 3, 40, *range(2, 20), 5):
        x = torch.randn(rows, 4)
        outputs = network.forward(network.prepare({"": x}), rows)
        network.backward(*(torch.ones_like(y) for y in outputs))
        expected = torch.autograd.grad(sum(y.sum() for y in made({"": x})), made.parameters())
        torch.testing.assert_close(flat.gradient_P, torch.cat([g.reshape(-1) for g in expected]))


def test_what_was_made_inside_the_guard_works_outside_of_it():
    made, _ = net()
    network = StackedGradient(made)
    inputs = network.prepare({"": torch.randn(5, 4)})
    with network.guard():
        inside = network.forward(inputs, 5)
    outside = network.forward(inputs, 5)
    torch.testing.assert_close(inside[0].clone(), outside[0])


@pytest.mark.parametrize(
    ("space", "activation", "by_hand"),
    [(VECTOR, "tanh", True), (VECTOR, "gelu", False), (TREE, "tanh", False)],
)
def test_networks_with_learned_encoders_or_gelu_are_differentiated_automatically(
    space, activation, by_hand
):
    made, flat = net(activation=activation, space=space)
    assert isinstance(build_gradient_net(made, flat), StackedGradient) is by_hand


def test_one_network_alone_gives_what_all_give_together():
    made, _ = net(space=spaces.Box(-1, 1, (4,)))
    obs = {"": torch.randn(5, 4)}
    for index, together in enumerate(made(obs)):
        torch.testing.assert_close(made.one(obs, index), together)
