"""The policy gradient of one horizon, against the formula written out and differentiated
automatically."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.experience import Rig
from tianji.models.actions import squashed_layout
from tianji.models.heads import build_head
from tianji.models.tensors import flatten
from tianji.ops.returns import discounted_to_go, first_episode, without_peers
from tianji.types import Batch

SHAPES = [("vector", action) for action in ("discrete", "multidiscrete", "multibinary", "box")]
SHAPES += [("tree", "discrete"), ("image", "box")]


def episode_of(unroll, n, num_rows):
    """The steps of environment n that count, one by one."""
    steps = []
    for t in range(num_rows):
        if not unroll["valid"][t, n]:
            break  # the environment failed
        steps.append(t)
        if unroll["terminated"][t, n] or unroll["truncated"][t, n]:
            break
    return steps


def literal_gradient(rig, unroll, num_rows):
    """Mean over environments of sum_t (sum_{h >= t} gamma^h r_h) grad log pi(a_t | s_t)."""
    gamma, num_envs = rig.config.algorithm.gamma, unroll["valid"].shape[1]
    head = build_head(squashed_layout(rig.spaces.action))
    total = torch.zeros(())
    for n in range(num_envs):
        steps = episode_of(unroll, n, num_rows)
        for t in steps:
            to_go = sum(gamma**h * float(unroll["reward"][h, n]) for h in steps if h >= t)
            obs = {
                key.removeprefix("obs").removeprefix("."): torch.from_numpy(rows[t, n][None].copy())
                for key, rows in unroll.items()
                if key.startswith("obs")
            }
            outputs = rig.model(obs)
            action = torch.from_numpy(np.atleast_1d(unroll["action"][t, n]).reshape(1, -1).copy())
            log_prob = head.log_prob(outputs, action)
            total = total + to_go * log_prob.sum() / num_envs
    parameters = list(rig.model.parameters())
    return torch.cat([g.reshape(-1) for g in torch.autograd.grad(total, parameters)])


def estimator_of(rig):
    return rig.algorithm.build_estimator(rig.model, rig.spaces, rig.config)


@pytest.mark.parametrize(("observation", "action"), SHAPES)
def test_a_gradient_is_the_formula_differentiated(observation, action):
    rig = Rig("rennala-nigt", observation, action, settings={"gamma": 0.9})
    unroll = rig.unroll(2)
    estimator = estimator_of(rig)
    estimator.begin(version=0)
    estimator.add(unroll, num_rows=8)
    expected = literal_gradient(rig, unroll, 8)
    np.testing.assert_allclose(estimator.sum_P, expected, rtol=1e-4, atol=1e-6)


def test_rows_that_were_not_made_and_episodes_after_the_first_never_matter():
    clean, dirty = Rig("rennala-nigt"), Rig("rennala-nigt")
    unroll = clean.unroll(3)
    unroll["valid"][5:] = False
    poisoned = {key: array.copy() for key, array in unroll.items()}
    for n in range(4):
        over = np.setdiff1d(np.arange(8), episode_of(unroll, n, 5))
        poisoned["reward"][over, n] = poisoned["obs"][over, n] = np.nan
        poisoned["action"][over, n] = 10**6
    estimators = estimator_of(clean), estimator_of(dirty)
    estimators[0].add(unroll, num_rows=5)
    estimators[1].add(poisoned, num_rows=5)
    np.testing.assert_array_equal(estimators[1].sum_P, estimators[0].sum_P)


def test_contributions_add_up_from_the_beginning_of_a_version_or_from_what_was_left():
    rig = Rig("rennala-nigt")
    estimator = estimator_of(rig)
    sums = []
    for seed in (1, 2):
        estimator.begin(version=0)
        estimator.add(rig.unroll(seed), num_rows=8)
        sums.append(estimator.sum_P.copy())
    estimator.begin(version=0)
    assert (estimator.count, abs(estimator.sum_P).max()) == (0, 0.0)
    estimator.load(sums[0], 1)
    estimator.add(rig.unroll(2), num_rows=8)
    assert estimator.count == 2
    np.testing.assert_allclose(estimator.sum_P, sums[0] + sums[1], rtol=1e-5, atol=1e-7)


def test_gradients_are_taken_at_the_look_ahead_point():
    rig = Rig("rennala-nigt")
    ahead = torch.randn_like(rig.model.ahead)
    rig.model.ahead.copy_(ahead)
    estimator_of(rig).look_ahead()
    assert torch.equal(flatten(rig.model).vector_P, ahead)


@pytest.mark.parametrize(
    ("schedule", "eta"), [("constant", 0.25), ("decaying", 0.25 * (2 / 10) ** 0.8)]
)
def test_federated_actors_mix_their_gradient_into_the_momentum_they_received(schedule, eta):
    """With the eta of the step that follows those of which they know: the eighth. What number a
    restored learner gives to its versions does not matter."""
    rig = Rig("afedpg", settings={"eta": 0.25, "schedule": schedule})
    unroll, estimator = rig.unroll(1), estimator_of(rig)
    estimator.begin(version=0)
    estimator.add(unroll, num_rows=8)
    alone = literal_gradient(rig, unroll, 8)
    np.testing.assert_allclose(estimator.sum_P, alone, rtol=1e-4, atol=1e-6)
    for _ in range(7):
        arrays = {"sum": torch.randn_like(rig.model.direction).numpy(), "weight": np.ones(1)}
        rig.train(Batch(arrays, (), 1, 8))
    estimator.begin(version=0)
    estimator.add(unroll, num_rows=8)
    expected = (1 - eta) * rig.model.direction + eta * literal_gradient(rig, unroll, 8)
    np.testing.assert_allclose(estimator.sum_P, expected, rtol=1e-4, atol=1e-6)


@given(st.integers(0, 10**6), st.integers(1, 7), st.integers(1, 4))
@settings(max_examples=50, deadline=None)
def test_returns_to_go_are_the_double_loop(seed, num_rows, num_envs):
    rng = np.random.default_rng(seed)
    reward = rng.normal(size=(num_rows, num_envs)).astype(np.float32)
    done, valid = rng.random((2, num_rows, num_envs)) < [[[0.3]], [[0.8]]]
    counts = first_episode(done, valid)
    flags = {"valid": valid, "terminated": done, "truncated": done}
    to_go = discounted_to_go(reward, counts, 0.9)
    for n in range(num_envs):
        steps = episode_of(flags, n, num_rows)
        assert np.flatnonzero(counts[:, n]).tolist() == steps
        for t in steps:
            expected = sum(0.9**h * float(reward[h, n]) for h in steps if h >= t)
            assert to_go[t, n] == pytest.approx(expected)


def test_peers_are_the_others_that_still_play():
    to_go = np.array([[1.0, 2.0, 6.0], [0.5, 9.0, 2.5]])
    counts = np.array([[True, True, True], [True, False, True]])
    expected = [[1.0 - 4.0, 2.0 - 3.5, 6.0 - 1.5], [0.5 - 2.5, 0.0, 2.5 - 0.5]]
    np.testing.assert_allclose(without_peers(to_go, counts), expected)


def test_who_plays_alone_is_compared_with_nobody():
    to_go, counts = np.array([[3.0, 9.0]]), np.array([[True, False]])
    np.testing.assert_allclose(without_peers(to_go, counts), [[3.0, 0.0]])


def test_equal_returns_leave_exactly_nothing():
    to_go = np.full((1, 3), -0.1) * np.arange(1.0, 4.0)[:, None]
    assert not without_peers(to_go, np.ones((3, 3), np.bool_)).any()


def test_peers_leave_the_mean_of_the_gradient_where_it_is():
    """All pairs of one-step episodes of a policy with two actions, weighed by their probability."""
    p, reward = np.array([0.3, 0.7]), np.array([1.0, 5.0])
    score = np.array([1 - p[0], -p[0]])  # d log pi / d logit of the first action
    exact = float((p * reward * score).sum())
    mean = 0.0
    for a in (0, 1):
        for b in (0, 1):
            to_go = without_peers(np.array([[reward[a], reward[b]]]), np.ones((1, 2), np.bool_))
            mean += p[a] * p[b] * float((to_go[0] * score[[a, b]]).mean())
    assert mean == pytest.approx(exact)
