"""Outer steps against closed forms on quadratics J = -(theta - best)' A (theta - best) / 2.

Gradients there are linear, so transport is exact: d_t is the gradient at theta_t itself, however
far ahead it was taken, and with A = c I the method walks straight to the best point.
"""

import math

import numpy as np
import pytest
import torch

from tianji.ops.nigt import Federated, Nigt, Pace, PlainAscent, Point

EXACT = {"rtol": 0, "atol": 1e-10}
BEST_P = torch.tensor([3.0, -1.0, 0.5, 7.0], dtype=torch.float64)
START_P = torch.tensor([-2.0, 4.0, 1.5, 0.0], dtype=torch.float64)


def build(kind, start_P, pace):
    return kind(Point.at(start_P.clone()), pace)


def walk(outer, gradient, num_steps):
    """Thetas after each step, with gradients taken where the method asks for them."""
    thetas = []
    for _ in range(num_steps):
        outer.step(gradient(outer.point.ahead_P))
        thetas.append(outer.point.theta_P.numpy().copy())
    return np.array(thetas)


def alpha_at(pace, t):
    return pace.alpha if pace.schedule == "constant" else pace.alpha * 2 / (t + 2)


def eta_at(pace, t):
    return pace.eta if pace.schedule == "constant" else pace.eta * (2 / (t + 2)) ** (4 / 5)


PACES = [Pace(0.3, 1.0), Pace(0.3, 0.1), Pace(2.0, 0.5, "decaying"), Pace(0.7, 1.0, "decaying")]


@pytest.mark.parametrize("pace", PACES)
def test_it_walks_straight_to_the_best_point_and_then_to_and_fro(pace):
    outer = build(Nigt, START_P, pace)
    found = walk(outer, lambda at_P: -3.0 * (at_P - BEST_P), 100)
    best, start = BEST_P.numpy(), START_P.numpy()
    distance = math.dist(start, best)
    ray = (start - best) / distance
    for t, theta in enumerate(found, start=1):
        distance -= math.copysign(alpha_at(pace, t), distance)
        np.testing.assert_allclose(theta, best + distance * ray, **EXACT)


@pytest.mark.parametrize("pace", PACES)
def test_transport_is_exact_on_any_quadratic(pace):
    root = np.random.default_rng(1).normal(size=(4, 4))
    a = root @ root.T + np.eye(4)
    a_PP = torch.from_numpy(a)
    found = walk(build(Nigt, START_P, pace), lambda at_P: a_PP @ (BEST_P - at_P), 60)
    theta = START_P.numpy()
    for t, met in enumerate(found, start=1):
        gradient = a @ (BEST_P.numpy() - theta)
        theta = theta + alpha_at(pace, t) * gradient / math.sqrt(float(gradient @ gradient))
        np.testing.assert_allclose(met, theta, **EXACT)


@pytest.mark.parametrize("pace", PACES)
def test_noise_is_averaged_with_the_weights_of_the_momentum(pace):
    """d_t is the gradient at theta_t plus the noise of all steps: that of step s weighs eta_s times
    (1 - eta) of every later one, and that of the first 1 times those."""
    outer = build(Nigt, START_P, pace)
    noise = np.random.default_rng(2).normal(size=(30, 4))
    for t in range(1, 31):
        before_P = outer.point.theta_P.clone()
        outer.step(BEST_P - outer.point.ahead_P + torch.from_numpy(noise[t - 1]))
        expected = (BEST_P - before_P).numpy()
        for s in range(1, t + 1):
            later = math.prod(1 - eta_at(pace, k) for k in range(s + 1, t + 1))
            expected = expected + (1.0 if s == 1 else eta_at(pace, s)) * later * noise[s - 1]
        np.testing.assert_allclose(outer.point.direction_P.numpy(), expected, **EXACT)


def test_two_steps_by_hand():
    outer = build(Nigt, torch.tensor([0.0, 0.0], dtype=torch.float64), Pace(5.0, 0.25))
    moved = outer.step(torch.tensor([3.0, 4.0], dtype=torch.float64))
    assert (moved.direction_norm, moved.step_size) == (5.0, 5.0)
    assert outer.point.theta_P.tolist() == [3.0, 4.0]
    assert outer.point.ahead_P.tolist() == [12.0, 16.0], "three more of the same steps"
    outer.step(torch.tensor([-9.0, 20.0], dtype=torch.float64))
    assert outer.point.direction_P.tolist() == [0.0, 8.0]
    assert outer.point.theta_P.tolist() == [3.0, 9.0]
    assert outer.point.ahead_P.tolist() == [3.0, 24.0]


def test_schedules_count_from_one():
    pace = Pace(0.3, 0.5, "decaying")
    assert [pace.step_size(t) for t in (1, 2, 8)] == pytest.approx([0.2, 0.15, 0.06])
    assert pace.momentum(2) == pytest.approx(0.5 * 0.5**0.8)
    assert (Pace(0.3, 0.5).step_size(9), Pace(0.3, 0.5).momentum(9)) == (0.3, 0.5)


@pytest.mark.parametrize("kind", [Nigt, Federated, PlainAscent])
def test_no_gradient_is_no_step(kind):
    outer = build(kind, START_P, Pace(0.1, 0.5))
    moved = outer.step(torch.zeros(4, dtype=torch.float64))
    assert moved.direction_norm == 0.0
    assert torch.equal(outer.point.theta_P, START_P)
    assert torch.equal(outer.point.ahead_P, START_P)


def test_a_momentum_that_dies_down_ends_in_no_step_and_never_in_an_endless_one():
    outer = build(Nigt, torch.zeros(2), Pace(0.2, 0.5))
    outer.step(torch.tensor([3.0, 4.0]))
    lengths = [outer.step(torch.zeros(2)).step_size for _ in range(160)]
    assert lengths[0] == 0.2
    assert lengths[-1] == 0.0
    assert torch.isfinite(outer.point.theta_P).all()
    assert float(outer.point.theta_P.norm()) <= 0.2 * 161


def test_the_norm_is_one_number_over_all_parameters():
    outer = build(Nigt, torch.zeros(10_000), Pace(1.0, 0.5))
    outer.step(torch.full((10_000,), 1e-30))
    assert float(outer.point.theta_P.double().norm()) == pytest.approx(1.0, abs=1e-6)
    assert outer.point.theta_P.dtype == torch.float32


@pytest.mark.parametrize("schedule", ["constant", "decaying"])
def test_plain_ascent_shrinks_the_error_by_its_factors(schedule):
    pace = Pace(0.2, schedule=schedule)
    found = walk(build(PlainAscent, START_P, pace), lambda at_P: 0.5 * (BEST_P - at_P), 40)
    error, best = (START_P - BEST_P).numpy(), BEST_P.numpy()
    for t, theta in enumerate(found, start=1):
        error = error * (1 - 0.5 * alpha_at(pace, t))
        np.testing.assert_allclose(theta, best + error, **EXACT)


def test_federated_steps_go_along_what_arrived():
    """One actor that is always up to date makes AFedPG the same as NIGT."""
    pace = Pace(0.25, 0.2)
    server, nigt = build(Federated, START_P, pace), build(Nigt, START_P, pace)
    for version in range(40):
        gradient_P = torch.tensor([1.0, 2.0, -3.0, 0.5], dtype=torch.float64) * (
            BEST_P - server.point.ahead_P
        )
        eta = pace.momentum(version + 1) if version else 1.0
        nigt.step(gradient_P)
        server.step((1 - eta) * server.point.direction_P + eta * gradient_P)
        for own_P, other_P in zip(server.point, nigt.point, strict=True):
            np.testing.assert_allclose(own_P.numpy(), other_P.numpy(), **EXACT)


@pytest.mark.parametrize("kind", [Nigt, Federated, PlainAscent])
def test_it_goes_on_from_its_state_to_the_last_bit(kind):
    pace = Pace(0.25, 0.3, "decaying")
    gradients = torch.from_numpy(np.random.default_rng(3).normal(size=(8, 4)))
    whole, before = build(kind, START_P, pace), build(kind, START_P, pace)
    for gradient_P in gradients[:5]:
        whole.step(gradient_P)
        before.step(gradient_P)
    state = before.state()
    after = build(kind, before.point.theta_P, pace)
    before.step(gradients[0])
    after.load_state(state)
    assert all(map(torch.equal, after.point, whole.point)), "the state is a copy of its own"
    for gradient_P in gradients[5:]:
        whole.step(gradient_P)
        after.step(gradient_P)
    assert all(map(torch.equal, after.point, whole.point))


def test_tensors_that_are_given_are_written_in_place():
    theta_P, previous_P, ahead_P, direction_P = tensors = [START_P * k for k in (1, 2, 3, 4)]
    eta = torch.zeros(1, dtype=torch.float64)
    outer = Nigt(Point(*tensors, eta), Pace(1.0, 0.5))
    assert eta == 1.0, "the first direction is the gradient"
    assert torch.equal(previous_P, START_P)
    assert torch.equal(ahead_P, START_P), "before the first step nothing is ahead"
    assert not direction_P.any()
    outer.step(BEST_P)
    assert torch.equal(previous_P, START_P)
    assert torch.equal(direction_P, BEST_P)
    assert torch.equal(ahead_P, 2 * theta_P - START_P)
    assert eta == 0.5
