"""Closed-form gradients of PPO's objectives against automatic ones."""

import torch

from tianji.ops.policy_gradient import (
    approximate_kl,
    clip_value,
    surrogate_gradient,
    surrogate_limits,
)

CLIP = 0.2


def test_surrogate_gradient_is_that_of_the_papers_minimum():
    torch.manual_seed(0)
    log_ratio = (0.5 * torch.randn(500)).requires_grad_()
    advantage, weight = torch.randn(500), torch.rand(500)
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
    loss = -(weight * torch.minimum(ratio * advantage, clipped * advantage))
    (expected,) = torch.autograd.grad(loss.sum(), log_ratio)
    limits = surrogate_limits(advantage, CLIP)
    got = surrogate_gradient(ratio.detach(), -weight * advantage, limits)
    torch.testing.assert_close(got, expected)
    bounded = torch.clamp(ratio, limits.lower_B, limits.upper_B)
    torch.testing.assert_close(-weight * advantage * bounded, loss)
    assert 0 < (got == 0).sum() < 500


def test_clipped_value_error_is_the_larger_of_the_two():
    torch.manual_seed(1)
    value = torch.randn(500, requires_grad=True)
    old, target = torch.randn(500), torch.randn(500)
    clipped = old + (value - old).clamp(-CLIP, CLIP)
    loss = torch.maximum((value - target) ** 2, (clipped - target) ** 2)
    (expected,) = torch.autograd.grad(loss.sum(), value)
    error = (value - target).detach()
    gradient = 2 * error
    clip_value(value.detach(), old, CLIP, error, gradient)
    torch.testing.assert_close(error.square(), loss.detach())
    torch.testing.assert_close(gradient, expected)
    assert 0 < (gradient == 0).sum() < 500


def test_approximate_kl_is_close_to_the_true_one():
    old, new = torch.tensor([0.5, 0.5]), torch.tensor([0.55, 0.45])
    log_ratio = (new / old).log()
    draws = log_ratio.repeat(1000)
    true = (old * (old / new).log()).sum()
    torch.testing.assert_close(approximate_kl(draws), true, rtol=1e-3, atol=0)
