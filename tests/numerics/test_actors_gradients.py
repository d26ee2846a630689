"""The gradients of A3C's and Gorila's actors, against their formulae written out and differentiated
automatically."""

import numpy as np
import pytest
import torch

from tests.fakes.experience import Rig

SHAPES = [("vector", action) for action in ("discrete", "multidiscrete", "box")]
SHAPES += [("tree", "discrete"), ("image", "box")]


def observations(arrays, index, prefix="obs"):
    """Observations by leaf key, as a batch of one or as they are."""
    return {
        key.removeprefix(prefix).removeprefix("."): torch.from_numpy(np.ascontiguousarray(x[index]))
        for key, x in arrays.items()
        if key == prefix or key.startswith(f"{prefix}.")
    }


def estimator_of(rig):
    return rig.algorithm.build_estimator(rig.model, rig.spaces, rig.config)


def differentiated(loss, model):
    found = torch.autograd.grad(loss, list(model.parameters()))
    return torch.cat([gradient.reshape(-1) for gradient in found])


def values_of(rig, unroll):
    """V of every row, without gradient."""
    num_rows = len(unroll["valid"])
    with torch.no_grad():
        return [rig.model(observations(unroll, t))[1][:, 0].tolist() for t in range(num_rows + 1)]


def literal_advantage(unroll, value, t, n, config):
    """sum_k (gamma lambda)^k delta_t+k, up to the end of the episode or of the unroll."""
    total = 0.0
    for k in range(t, len(unroll["valid"])):
        bootstrap = 0.0 if unroll["terminated"][k, n] else value[k + 1][n]
        delta = float(unroll["reward"][k, n]) + config.gamma * bootstrap - value[k][n]
        total += (config.gamma * config.gae_lambda) ** (k - t) * delta
        if unroll["terminated"][k, n] or unroll["truncated"][k, n]:
            break
    return total


def literal_a3c_loss(rig, unroll):
    """The mean over valid steps of -A log pi + c_1 (V - R)^2 - c_2 H."""
    config, value, losses = rig.config.algorithm, values_of(rig, unroll), []
    for t, n in np.argwhere(unroll["valid"]):
        advantage = literal_advantage(unroll, value, t, n, config)
        outputs, values = rig.model(observations(unroll, np.s_[t, n : n + 1]))
        target = advantage + value[t][n]
        action = torch.from_numpy(np.atleast_1d(unroll["action"][t, n]).reshape(1, -1).copy())
        losses.append(
            -advantage * rig.model.head.log_prob(outputs, action).sum()
            + config.value_loss * (values[0, 0] - target) ** 2
            - config.entropy * rig.model.head.entropy(outputs).sum()
        )
    return sum(losses) / len(losses)


@pytest.mark.parametrize("gae_lambda", [1.0, 0.9])
@pytest.mark.parametrize(("observation", "action"), SHAPES)
def test_a_gradient_of_a3c_is_its_loss_differentiated(observation, action, gae_lambda):
    settings = {"gamma": 0.9, "gae_lambda": gae_lambda, "entropy": 0.03, "value_loss": 0.7}
    rig = Rig("a3c", observation, action, settings=settings)
    unroll = rig.unroll(2)
    assert unroll["terminated"].any() and unroll["truncated"].any() and not unroll["valid"].all()
    estimator = estimator_of(rig)
    estimator.begin(version=0)
    estimator.add(unroll, num_rows=8)
    expected = differentiated(literal_a3c_loss(rig, unroll), rig.model)
    np.testing.assert_allclose(estimator.sum_P, expected, rtol=1e-3, atol=1e-5)
    assert estimator.count == 1


def test_a_gradient_of_a3c_without_a_valid_step_is_zero():
    rig = Rig("a3c")
    unroll = rig.unroll(1)
    unroll["valid"][:] = False
    estimator = estimator_of(rig)
    estimator.add(unroll, num_rows=8)
    assert estimator.count == 1 and not estimator.sum_P.any()


def literal_gorila_loss(rig, sample, target, is_double, loss):
    """The mean of huber(Q(s, a) - y) or half the square, item by item."""
    losses = []
    for i in range(len(sample["action"])):
        here, there = (
            observations(sample, np.s_[i : i + 1], prefix) for prefix in ("obs", "next_obs")
        )
        with torch.no_grad():
            next_q = target(there)[0]
            best = int((rig.model(there)[0] if is_double else next_q).argmax())
            y = float(sample["reward"][i]) + float(sample["discount"][i]) * float(next_q[best])
        error = rig.model(here)[0, int(sample["action"][i])] - y
        is_square = loss == "mse" or abs(float(error.detach())) <= 1.0
        losses.append(0.5 * error**2 if is_square else error.abs() - 0.5)
    return sum(losses) / len(losses)


@pytest.mark.parametrize("loss", ["huber", "mse"])
@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("observation", ["vector", "tree", "image"])
def test_a_gradient_of_gorila_is_its_loss_differentiated(observation, double, loss):
    rig = Rig("gorila", observation, settings={"double": double, "loss": loss})
    target = Rig("gorila", observation).model
    estimator = estimator_of(rig)
    estimator.begin(version=0)
    with torch.no_grad():  # the network goes on, the target stays
        for parameter in rig.model.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=torch.manual_seed(1)))
    estimator.begin(version=1)
    sample = rig.sample(3)
    sample["reward"] *= 2.0
    estimator.add(sample, num_rows=8)
    expected = differentiated(literal_gorila_loss(rig, sample, target, double, loss), rig.model)
    np.testing.assert_allclose(estimator.sum_P, expected, rtol=1e-3, atol=1e-5)


def test_the_target_network_is_copied_with_the_first_version_of_a_period_that_is_read():
    rig = Rig("gorila", settings={"target_period_updates": 10})
    estimator = estimator_of(rig)

    def target():
        return torch.cat([p.reshape(-1) for p in estimator._target.model.parameters()])

    copies = []
    for version in (3, 9, 11, 14, 25):
        with torch.no_grad():
            next(rig.model.parameters()).add_(1.0)
        estimator.begin(version)
        if torch.equal(target(), rig.parameters()):
            copies.append(version)
    assert copies == [3, 11, 25]
