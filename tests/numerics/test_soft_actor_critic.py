"""SAC's losses against the formulas of the paper, written with torch.distributions and two
critics that are networks of their own."""

import math

import pytest
import torch
from torch import nn
from torch.distributions import Independent, Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform
from torch.nn.functional import softplus

from tests.fakes.experience import Rig
from tianji.algorithms.accelerators.sac import AutogradSAC
from tianji.algorithms.sac.loss import sac_losses
from tianji.models.tensors import flatten

TARGET_ENTROPY = -1.5


def squashed(outputs):
    """The distribution of actions in [-1, 1], by the book."""
    mean, spread = outputs.chunk(2, 1)
    normal = Independent(Normal(mean, softplus(spread)), 1)
    return TransformedDistribution(normal, [TanhTransform(cache_size=1)])


@pytest.fixture
def rig():
    made = Rig("sac", settings={"initial_temperature": 0.3})
    generator = torch.Generator().manual_seed(4)
    for vector in (flatten(made.update._networks.policy), flatten(made.update._networks.critics)):
        vector.vector_P.add_(0.1 * torch.randn(len(vector.vector_P), generator=generator))
    return made


@pytest.fixture
def batch(rig):
    return rig.update._read(rig.batch(3).arrays).update(0)


def test_the_log_probability_of_a_squashed_action_is_by_the_book(rig):
    outputs, noise = torch.randn(40, 4), 0.5 * torch.randn(40, 2)
    action, log_prob = rig.model.head.draw(outputs, noise)
    mean, spread = outputs.chunk(2, 1)
    torch.testing.assert_close(action, torch.tanh(mean + softplus(spread) * noise))
    torch.testing.assert_close(log_prob, squashed(outputs).log_prob(action), rtol=1e-4, atol=1e-4)


def test_actions_at_their_bounds_have_finite_log_probabilities(rig):
    outputs = torch.tensor([[50.0, -50.0, 0.0, 0.0]], requires_grad=True)
    action, log_prob = rig.model.head.draw(outputs, torch.zeros(1, 2))
    assert action.tolist() == [[1.0, -1.0]]
    (gradient,) = torch.autograd.grad(log_prob.sum(), outputs)
    assert log_prob.isfinite().all() and gradient.isfinite().all()


def one_critic(critics, index):
    """The same numbers in a network of its own."""
    layers = []
    for weight, bias in zip(critics.net.weights, critics.net.biases, strict=True):
        linear = nn.Linear(*weight.shape[1:])
        linear.weight.data, linear.bias.data = weight[index].detach().t(), bias[index, 0].detach()
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers, critics.net.outputs[index])


def test_twin_critics_are_two_networks_with_weights_of_their_own(rig, batch):
    critics = rig.update._networks.critics
    both = critics(batch.obs, batch.action)
    x = torch.cat([batch.obs[""], batch.action], 1)
    for index, q in enumerate(both):
        torch.testing.assert_close(q, one_critic(critics, index)(x)[:, 0])
    assert (both[0] - both[1]).abs().max() > 0.01


def literal(rig, batch):
    """The three losses, line by line of the paper (equations 5, 7 and 18; appendix C)."""
    networks, targets = rig.update._networks, rig.update._targets.model
    alpha = networks.temperature.log.detach().exp()
    q = [one_critic(networks.critics, i) for i in range(2)]
    q_target = [one_critic(targets, i) for i in range(2)]

    def least(critics, obs, action):
        rated = [critic(torch.cat([obs, action], 1))[:, 0] for critic in critics]
        return torch.stack(rated).min(0).values

    def drawn(obs, noise):
        outputs = networks.policy({"": obs})
        mean, spread = outputs.chunk(2, 1)
        action = torch.tanh(mean + softplus(spread) * noise)
        return action, squashed(outputs).log_prob(action)

    s, s_next = batch.obs[""], batch.next_obs[""]
    with torch.no_grad():
        a_next, log_pi_next = drawn(s_next, batch.next_noise)
        y = least(q_target, s_next, a_next) - alpha * log_pi_next
        y = batch.reward + batch.discount * y
    x = torch.cat([s, batch.action], 1)
    critic_loss = sum(0.5 * ((critic(x)[:, 0] - y) ** 2).mean() for critic in q)
    b, log_pi = drawn(s, batch.noise)
    policy_loss = (alpha * log_pi - least(q, s, b)).mean()
    log_alpha = networks.temperature.log
    temperature_loss = -(log_alpha * (log_pi.detach() + TARGET_ENTROPY)).mean()
    return (critic_loss, policy_loss, temperature_loss), y


def test_the_losses_are_those_of_the_paper(rig, batch):
    losses, found = sac_losses(
        rig.update._networks, rig.update._targets.model, batch, TARGET_ENTROPY
    )
    expected, y = literal(rig, batch)
    torch.testing.assert_close(tuple(losses), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.target_B, y, rtol=1e-4, atol=1e-4)
    assert float(found.alpha) == pytest.approx(0.3)


def test_every_loss_moves_its_own_parameters_alone(rig, batch):
    networks = rig.update._networks
    AutogradSAC(networks, rig.update._targets.model).gradient(batch, TARGET_ENTROPY)
    (critic_loss, policy_loss, _), _ = literal(rig, batch)
    policy = torch.autograd.grad(policy_loss, list(networks.policy.parameters()))
    expected = torch.cat([gradient.reshape(-1) for gradient in policy])
    got = flatten(networks.policy).gradient_P
    torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-4)
    outputs = [output.weight for output in networks.critics.net.outputs]
    for output, gradient in zip(outputs, torch.autograd.grad(critic_loss, outputs), strict=True):
        torch.testing.assert_close(output.grad, gradient, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("log_pi", "rises"), [(5.0, True), (-5.0, False)])
def test_the_temperature_rises_while_the_policy_is_too_certain(rig, batch, log_pi, rises):
    """A target entropy above or below the policy's own moves alpha up or down."""
    networks = rig.update._networks
    _, found = sac_losses(networks, rig.update._targets.model, batch, 0.0)
    target = -float(found.log_prob_B.mean()) + math.copysign(1.0, log_pi)
    AutogradSAC(networks, rig.update._targets.model).gradient(batch, target)
    slope = float(networks.temperature.log.grad)
    assert slope == pytest.approx(-1.0 if rises else 1.0, rel=1e-3)
