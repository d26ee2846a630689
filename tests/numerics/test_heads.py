"""Action heads against torch.distributions, and their closed forms against autograd."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch.distributions import Categorical, Normal
from torch.nn.functional import softplus

from tests.fakes.experience import ACTIONS
from tianji.algorithms.accelerators.heads import close_head
from tianji.models.actions import Choices, Squashed, action_layout, squashed_layout
from tianji.models.heads import SMALLEST_SPREAD, CategoricalHead, build_head
from tianji.models.tensors import flatten

ROWS = 50
LAYOUTS = {
    **{kind: action_layout(space) for kind, space in ACTIONS.items()},
    "squashed": squashed_layout(ACTIONS["box"]),
}


def made(kind):
    """A head, random outputs and random actions."""
    torch.manual_seed(3)
    layout = LAYOUTS[kind]
    head = build_head(layout)
    flatten(head)
    outputs = torch.randn(ROWS, layout.num_outputs, requires_grad=True)
    if isinstance(layout, Choices):
        action = torch.stack([torch.randint(n, (ROWS,)) for n in layout.sizes], 1)
    elif isinstance(layout, Squashed):
        action = torch.randn(ROWS, 2)
    else:
        head.log_std_A.data.copy_(torch.tensor([0.3, -0.7]))
        action = torch.randn(ROWS, 2)
    return layout, head, outputs, action


def test_continuous_actions_begin_with_a_quarter_of_their_range():
    inf = float("inf")
    low, high = [-1.0, -2.0, 0.0, -inf, 3.0], [1.0, 2.0, 0.4, inf, 3.0]
    space = spaces.Box(np.array(low, np.float32), np.array(high, np.float32))
    head = build_head(action_layout(space))
    expected = torch.tensor([0.5, 1.0, 0.1, 1.0, 1.0])  # 1 where there is no range
    torch.testing.assert_close(head.log_std_A.exp(), expected)


def reference(layout, head, outputs, action):
    """log-probability and entropy, by the book and differentiable."""
    if isinstance(layout, Choices):
        logits = torch.split(outputs, list(layout.sizes), 1)
        parts = [Categorical(logits=x) for x in logits]
        log_prob = sum(p.log_prob(a) for p, a in zip(parts, action.unbind(1), strict=True))
        return log_prob, sum(p.entropy() for p in parts)
    if isinstance(layout, Squashed):
        mean, spread = outputs.chunk(2, 1)
        normal = Normal(mean, softplus(spread))
    else:
        normal = Normal(outputs, head.log_std_A.exp())
    return normal.log_prob(action).sum(1), normal.entropy().sum(1)


@pytest.mark.parametrize("kind", LAYOUTS)
def test_log_prob_and_entropy_are_by_the_book(kind):
    layout, head, outputs, action = made(kind)
    log_prob, entropy = reference(layout, head, outputs, action)
    torch.testing.assert_close(head.log_prob(outputs, action), log_prob)
    torch.testing.assert_close(head.entropy(outputs), entropy)
    closed = close_head(head)
    got, saved = closed.log_prob(outputs.detach().t(), closed.prepare(action))
    torch.testing.assert_close(got, log_prob.detach())
    torch.testing.assert_close(closed.entropy(saved), entropy.detach())


@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize("with_entropy", [False, True])
def test_the_closed_form_is_the_gradient_of_autograd(kind, with_entropy):
    layout, head, outputs, action = made(kind)
    slope, entropy_slope = torch.randn(2, ROWS)
    log_prob, entropy = reference(layout, head, outputs, action)
    loss = (log_prob * slope).sum() + with_entropy * (entropy * entropy_slope).sum()
    wanted = torch.autograd.grad(loss, [outputs, *head.parameters()])
    closed = close_head(head)
    _, saved = closed.log_prob(outputs.detach().t(), closed.prepare(action))
    got = closed.backward(saved, slope, entropy_slope if with_entropy else None)
    torch.testing.assert_close(got.t(), wanted[0])
    for parameter, gradient in zip(head.parameters(), wanted[1:], strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


def test_mode_takes_the_best_option_of_every_choice():
    head = CategoricalHead(action_layout(spaces.MultiDiscrete([3, 2])))
    outputs = torch.tensor([[0.0, 2.0, 1.0, 5.0, 4.0]])
    assert head.mode(outputs).tolist() == [[1, 0]]


def test_mode_of_a_gaussian_is_its_mean_cut_to_the_bounds():
    head = build_head(action_layout(ACTIONS["box"]))
    assert head.mode(torch.tensor([[0.25, -9.0]])).tolist() == [[0.25, -0.5]]


def test_one_choice_gives_actions_without_an_axis_of_their_own():
    head = build_head(action_layout(spaces.Discrete(3)))
    assert head.mode(torch.tensor([[0.0, 2.0, 1.0]])).tolist() == [1]


def test_the_mode_of_a_squashed_gaussian_is_its_mean_squashed_into_the_bounds():
    head = build_head(squashed_layout(spaces.Box(-1.0, 3.0, (2,))))
    outputs = torch.tensor([[0.0, 1e9, 5.0, 5.0]])
    assert head.mode(outputs).tolist() == [[1.0, 3.0]]


def test_a_spread_too_small_for_the_rounding_of_actions_stops_to_matter():
    closed = close_head(build_head(squashed_layout(spaces.Box(-1.0, 1.0, (1,)))))
    at, below = (torch.tensor([[0.5], [s]]) for s in (SMALLEST_SPREAD, -1e4))
    action = closed.prepare(torch.tensor([[0.5001]]))
    log_prob, saved = closed.log_prob(at, action)
    assert closed.backward(saved, torch.ones(1), None)[1] != 0.0
    same, saved = closed.log_prob(below, action)
    assert same == log_prob
    assert closed.backward(saved, torch.ones(1), None)[1] == 0.0
    assert torch.isfinite(closed.backward(saved, torch.ones(1), torch.ones(1))).all()
