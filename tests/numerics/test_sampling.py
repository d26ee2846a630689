"""Sampling in actors: the right frequencies, and the log-probability that the learner computes."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.fakes.experience import ACTIONS
from tianji.algorithms.actor_critic.policy import build_sampler
from tianji.models.actions import action_layout, squashed_layout
from tianji.models.heads import build_head

ROWS, ENVS = 50, 40
LAYOUTS = {
    **{kind: action_layout(space) for kind, space in ACTIONS.items()},
    "squashed": squashed_layout(ACTIONS["box"]),
}


def drawn(kind, outputs, noise_color=0.0):
    """An unroll of draws from the same outputs: head, sampler, as stored, as given to the world."""
    layout = LAYOUTS[kind]
    head = build_head(layout)
    sampler = build_sampler(head, noise_color)
    sampler.begin(np.random.default_rng(0), ROWS, ENVS)
    action = np.zeros((ROWS, ENVS, *layout.shape), layout.field.dtype)
    given = []
    for t in range(ROWS):
        sampler.outputs_RNA[t] = outputs
        given.append(np.array(sampler.sample(t, action[t])))
    return head, sampler, action, np.stack(given)


def test_draws_have_the_probabilities_of_the_softmax():
    logits = np.array([0.0, 1.0, -1.0], np.float32)
    _, _, action, given = drawn("discrete", logits)
    frequencies = np.bincount(action.reshape(-1), minlength=3) / action.size
    np.testing.assert_allclose(frequencies, np.exp(logits) / np.exp(logits).sum(), atol=0.03)
    np.testing.assert_array_equal(given, action)


def test_every_choice_of_a_multidiscrete_is_drawn_by_itself():
    logits = np.array([1.0, -1.0, 0.0, 0.0, 9.0], np.float32)
    _, _, action, _ = drawn("multidiscrete", logits)
    assert (action[..., 0] == 0).mean() == pytest.approx(1 / (1 + np.exp(-2.0)), abs=0.03)
    assert (action[..., 1] == 2).mean() > 0.99


def test_gaussian_draws_are_stored_whole_and_cut_for_the_world():
    _, _, action, given = drawn("box", np.array([0.4, -0.4], np.float32))
    assert action[..., 0].std() == pytest.approx(0.25, abs=0.03)  # a quarter of its range
    assert abs(given).max() == 0.5
    np.testing.assert_array_equal(given, np.clip(action, -0.5, 0.5))


def test_coloured_noise_keeps_the_direction_of_gaussian_draws():
    white, pink = (drawn("box", np.zeros(2, np.float32), color)[2] for color in (0.0, 1.0))
    alike = [
        np.mean(action[1:] * action[:-1]) / np.mean(np.square(action)) for action in (white, pink)
    ]
    assert abs(alike[0]) < 0.05 and alike[1] > 0.5
    assert pink.std() == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize(
    ("kind", "noise_color"), [*((kind, 0.0) for kind in LAYOUTS), ("box", 1.0)]
)
def test_log_prob_is_what_the_learner_computes(kind, noise_color):
    layout = LAYOUTS[kind]
    outputs = np.linspace(-1, 1, layout.num_outputs, dtype=np.float32)
    head, sampler, action, _ = drawn(kind, outputs, noise_color)
    log_prob = np.full((ROWS, ENVS), 7.0, np.float32)
    sampler.log_prob(action, log_prob, slice(1, 40))
    rows = torch.from_numpy(action.reshape(ROWS * ENVS, -1))
    same = torch.from_numpy(np.repeat(outputs[None], ROWS * ENVS, 0))
    expected = head.log_prob(same, rows).detach().numpy().reshape(ROWS, ENVS)
    np.testing.assert_allclose(log_prob[1:40], expected[1:40], rtol=1e-4, atol=1e-5)
    assert (log_prob[0] == 7.0).all() and (log_prob[40:] == 7.0).all()


@pytest.mark.parametrize("kind", LAYOUTS)
def test_mode_is_the_heads(kind):
    layout = LAYOUTS[kind]
    head = build_head(layout)
    outputs = np.random.default_rng(0).normal(size=(9, layout.num_outputs)).astype(np.float32)
    expected = head.mode(torch.from_numpy(outputs)).numpy()
    np.testing.assert_allclose(build_sampler(head).mode(outputs), expected, rtol=1e-6)


def test_squashed_draws_are_stored_as_drawn_and_squashed_for_the_world():
    outputs = np.array([0.4, -0.4, 0.0, -2.0], np.float32)
    _, _, action, given = drawn("squashed", outputs)
    np.testing.assert_allclose(action.mean((0, 1)), [0.4, -0.4], atol=0.05)
    np.testing.assert_allclose(action.std((0, 1)), np.log1p(np.exp([0.0, -2.0])), rtol=0.05)
    np.testing.assert_allclose(given, 0.5 * np.tanh(action), rtol=1e-6)


@pytest.mark.parametrize(("low", "high"), [(-0.4, 0.4), (0.1, 0.3), (-1e-3, 7.77), (5.0, 5.1)])
def test_what_is_squashed_never_leaves_the_bounds(low, high):
    space = spaces.Box(low, high, (1,), np.float32)
    layout = squashed_layout(space)
    sampler = build_sampler(build_head(layout))
    for mean in (-1e9, 1e9):
        (given,) = sampler.mode(np.array([[mean, 0.0]], np.float32))
        assert space.contains(given)
        np.testing.assert_allclose(given, high if mean > 0 else low, rtol=1e-3)


def test_squashing_to_the_very_end_stays_within_any_bounds():
    rng = np.random.default_rng(7)
    scale = 10.0 ** rng.integers(-3, 8, 20_000)
    low, high = np.sort((rng.standard_normal((2, 20_000)) * scale).astype(np.float32), 0)
    layout = squashed_layout(spaces.Box(low, high, dtype=np.float32))
    assert (layout.middle + layout.half <= high).all()
    assert (layout.middle - layout.half >= low).all()
    assert (abs(layout.half - (high - low) / 2) <= 1e-6 * scale).all()


def test_unbounded_boxes_are_not_cut():
    layout = action_layout(spaces.Box(-np.inf, np.inf, (1,), np.float32))
    head = build_head(layout)
    sampler = build_sampler(head)
    assert sampler.mode(np.array([[1e6]], np.float32)) == 1e6
