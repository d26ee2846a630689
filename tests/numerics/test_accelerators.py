"""Every closed form against automatic differentiation of the loss that a reader sees."""

import copy
import dataclasses

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.experience import ACTIONS, Rig, queue_batch
from tianji.algorithms.accelerators.actor_critic import (
    FEATURES,
    ClosedActorCritic,
    ClosedImpala,
    ClosedPPO,
)
from tianji.algorithms.accelerators.dqn import ClosedDQN
from tianji.algorithms.accelerators.inference import NumpyInference
from tianji.algorithms.accelerators.policy_gradient import ClosedPolicyGradient
from tianji.algorithms.accelerators.sac import AutogradSAC, ClosedSAC
from tianji.algorithms.actor_critic.model import ModelEvaluator
from tianji.algorithms.actor_critic.preprocessor import Preprocessor
from tianji.algorithms.dqn.loss import Transitions, dqn_loss
from tianji.algorithms.gradient import Autograd
from tianji.algorithms.impala.loss import UnrollPart, impala_loss
from tianji.algorithms.policy_gradient.loss import WeightedSteps, policy_gradient_objective
from tianji.algorithms.ppo.batch import Columns, EvaluatedBatch
from tianji.algorithms.ppo.loss import LossTerms, ppo_loss
from tianji.algorithms.sac import loss as sac
from tianji.models.tensors import flatten

# The same examples in every run: where a ratio lies within rounding of its clip, both gradients
# are right and differ.
some = settings(max_examples=25, deadline=None, derandomize=True)
seeds = st.integers(0, 2**31)
positive = st.floats(0.01, 2.0)
networks = st.fixed_dictionaries(
    {
        "activation": st.sampled_from(["tanh", "relu", "elu"]),
        "hidden": st.lists(st.integers(1, 9), max_size=3).map(tuple),
    }
)


def make_rig(name, network, action="discrete", seed=0, normalize=False, **algorithm):
    """A rig whose parameters are all random, biases and deviations included."""
    rig = Rig(
        name,
        action=action,
        settings=algorithm,
        model=network,
        normalize={"observations": normalize, "rewards": False},
    )
    generator = torch.Generator().manual_seed(seed)
    vector = flatten(rig.model).vector_P
    vector.add_(0.3 * torch.randn(len(vector), generator=generator))
    return rig


def assert_equal_gradients(rig, closed, automatic, trained=None):
    """Run both; the flat gradient must be the same up to rounding, wherever it stood before."""
    flat, found = flatten(trained or rig.model), []
    for compute in (closed, automatic):
        flat.gradient_P.fill_(7.0)
        reported = compute()
        found.append((flat.gradient_P.clone(), reported))
    (mine, my_report), (theirs, their_report) = found
    scale = max(1.0, float(theirs.abs().max()))
    torch.testing.assert_close(mine, theirs, rtol=2e-3, atol=2e-5 * scale)
    for one, other in zip(my_report or (), their_report or (), strict=True):
        torch.testing.assert_close(one.reshape(other.shape), other, rtol=1e-3, atol=1e-4)


@some
@given(
    networks,
    st.sampled_from(list(ACTIONS)),
    seeds,
    st.integers(1, 40),
    st.builds(
        LossTerms,
        clip=positive,
        value_clip=st.none() | positive,
        value_loss=st.sampled_from([0.0, 0.5, 2.0]),
        entropy=st.sampled_from([0.0, 0.03]),
        minibatch_rows=st.floats(1.0, 50.0),
    ),
)
def test_ppo(network, action, seed, num_rows, terms):
    rig = make_rig("ppo", network, action, seed)
    closed, generator = ClosedActorCritic(rig.model), torch.Generator().manual_seed(seed)
    unroll = rig.unroll(seed, num_rows=num_rows, num_envs=1)
    obs = {"": torch.from_numpy(unroll["obs"][:-1, 0])}
    action_BK = torch.from_numpy(unroll["action"][:, 0]).reshape(num_rows, -1)
    found = ModelEvaluator(rig.model).evaluate(obs, action_BK.t())
    noise = torch.randn(4, num_rows, generator=generator)
    columns = Columns(
        found.log_prob_B + 0.5 * noise[0], noise[1], found.value_R + noise[2], found.value_R
    )
    columns = columns._replace(value_B=columns.value_B + 0.5 * noise[3])
    fast = ClosedPPO(closed)
    plain = Autograd(flatten(rig.model), lambda *x: ppo_loss(rig.model, *x))
    batch = EvaluatedBatch(obs, action_BK.t(), columns)
    same = batch._replace(inputs=closed.inputs(obs), action_KB=closed.actions(action_BK))
    prepared = fast.prepare(same, terms)
    assert_equal_gradients(
        rig, lambda: fast.gradient(prepared, terms), lambda: plain.gradient(batch, terms)
    )
    order = torch.randperm(num_rows, generator=generator)
    shuffled = prepared.select(order)
    assert torch.equal(shuffled.inputs[FEATURES], prepared.inputs[FEATURES][order])
    assert_equal_gradients(
        rig,
        lambda: fast.gradient(shuffled, terms),
        lambda: plain.gradient(batch.select(order), terms),
    )


@some
@given(
    networks,
    st.sampled_from(list(ACTIONS)),
    seeds,
    st.booleans(),
    st.fixed_dictionaries(
        {
            "entropy": st.sampled_from([0.0, 0.03]),
            "value_loss": st.sampled_from([0.0, 0.5, 2.0]),
            "trace_lambda": st.floats(0.0, 1.0),
            "clip_rho": positive,
            "clip_c": positive,
            "clip_pg_rho": positive,
        }
    ),
)
def test_impala(network, action, seed, is_whole, algorithm):
    """Some rows are not valid; the policy that acted differs from the learner's."""
    rig = make_rig("impala", network, action, seed, **algorithm)
    unroll = rig.unroll(seed)
    rng = np.random.default_rng(seed)
    unroll["log_prob"] += rng.normal(0, 0.5, unroll["log_prob"].shape).astype(np.float32)
    unroll["valid"][:] |= is_whole
    experience = Preprocessor(rig.model, rig.spaces, rig.config).process(queue_batch(unroll))
    closed, plain = ClosedActorCritic(rig.model), ModelEvaluator(rig.model)

    def part(evaluator):
        order = experience.row_order()
        inputs = evaluator.inputs(experience.obs_rows(order))
        final_value = experience.final_value(evaluator)
        return UnrollPart(experience, order, inputs, experience.action_rows(), final_value)

    config = rig.config.algorithm
    autograd = Autograd(flatten(rig.model), lambda *x: impala_loss(rig.model, *x))
    assert_equal_gradients(
        rig,
        lambda: ClosedImpala(closed).gradient(part(closed), config),
        lambda: autograd.gradient(part(plain), config),
    )


@some
@given(
    networks,
    seeds,
    st.booleans(),
    st.fixed_dictionaries(
        {
            "double": st.booleans(),
            "dueling": st.booleans(),
            "loss": st.sampled_from(["huber", "mse"]),
        }
    ),
    st.integers(1, 5),
)
def test_dqn(network, seed, normalize, algorithm, n_step):
    rig = make_rig("dqn", network, seed=seed, normalize=normalize, n_step=n_step, **algorithm)
    config, target = rig.config.algorithm, copy.deepcopy(rig.model)
    flatten(target).vector_P.mul_(1.3)
    arrays = dict(rig.replay_batch(seed).arrays)
    arrays["discount"] = np.power(arrays["discount"], n_step)
    x = {name: torch.from_numpy(array) for name, array in arrays.items()}
    weight = torch.rand(x["reward"].shape, generator=torch.Generator().manual_seed(seed))
    batch = Transitions(
        {"": x["obs"]}, {"": x["next_obs"]}, x["action"], 3 * x["reward"], x["discount"], weight
    )
    fast = ClosedDQN(rig.model, target)
    plain = Autograd(flatten(rig.model), lambda *x: dqn_loss(rig.model, target, *x))
    prepared = fast.prepare(batch, config)
    for u in range(2):
        assert_equal_gradients(
            rig,
            lambda u=u: fast.gradient(prepared.update(u), config),
            lambda u=u: plain.gradient(batch.update(u), config),
        )


@some
@given(networks, seeds, st.booleans(), st.floats(-5.0, 5.0))
def test_sac(network, seed, normalize, target_entropy):
    network = {**network, "hidden": network["hidden"] or (4,)}
    rig = make_rig("sac", network, "box", seed, normalize)
    rig.train(rig.batch(seed))  # the statistics of observations are no longer 0 and 1
    networks, targets = rig.update._networks, rig.update._targets
    generator = torch.Generator().manual_seed(seed)
    for vector in (flatten(networks).vector_P, targets.vector_P):
        vector.add_(0.3 * torch.randn(len(vector), generator=generator))
    batch = rig.update._read(rig.batch(seed + 1).arrays)
    batch = sac.Transitions(*batch[:3], 3 * batch.reward, *batch[4:])
    fast, plain = ClosedSAC(networks, targets.model), AutogradSAC(networks, targets.model)
    prepared = fast.prepare(batch, target_entropy)
    for u in range(2):
        assert_equal_gradients(
            rig,
            lambda u=u: fast.gradient(prepared.update(u), target_entropy),
            lambda u=u: plain.gradient(batch.update(u), target_entropy),
            networks,
        )


@some
@given(networks, st.sampled_from(list(ACTIONS)), seeds, st.integers(1, 40))
def test_policy_gradient(network, action, seed, num_rows):
    rig = make_rig("rennala-nigt", network, action, seed)
    unroll = rig.unroll(seed, num_rows=num_rows, num_envs=1)
    generator = torch.Generator().manual_seed(seed)
    steps = WeightedSteps(
        {"": torch.from_numpy(unroll["obs"][:-1, 0])},
        torch.from_numpy(unroll["action"][:, 0]).reshape(num_rows, -1),
        torch.randn(num_rows, generator=generator),
    )
    objective = Autograd(flatten(rig.model), lambda *x: policy_gradient_objective(rig.model, *x))
    assert_equal_gradients(
        rig,
        lambda: ClosedPolicyGradient(rig.model).gradient(steps, None),
        lambda: objective.gradient(steps, None),
    )


@some
@given(networks, seeds, st.integers(1, 40), st.booleans())
def test_numpy_inference(network, seed, num_envs, normalize):
    rig = make_rig("ppo", network, seed=seed, normalize=normalize)
    for buffer in rig.model.buffers():  # of the normalizer
        buffer.uniform_(0.5, 2.0)
    obs = rig.unroll(seed, num_envs=num_envs)["obs"][0]
    with torch.no_grad():
        expected = rig.model({"": torch.from_numpy(obs)})
    for index in range(2):
        inference, found = NumpyInference(rig.model.net, index), np.empty_like(expected[index])
        inference.refresh()
        inference({"": obs}, found)
        np.testing.assert_allclose(found, expected[index], rtol=1e-3, atol=1e-4)


def test_the_terms_of_a_loss_are_a_plain_record():
    """value_slope follows from the others, so that replacing one replaces it."""
    terms = LossTerms(0.2, None, 0.5, 0.0, 10.0)
    assert float(terms.value_slope) == np.float32(0.1)
    assert float(dataclasses.replace(terms, value_loss=1.0).value_slope) == np.float32(0.2)
