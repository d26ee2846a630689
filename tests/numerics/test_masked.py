"""Masked policies and targets against literal formulas, and closed forms against the losses."""

import copy
import math

import numpy as np
import pytest
import torch

from tests.fakes.experience import Rig, queue_batch
from tianji.algorithms.accelerators.actor_critic import (
    ClosedActorCritic,
    ClosedImpala,
    ClosedPPO,
)
from tianji.algorithms.accelerators.dqn import ClosedDQN
from tianji.algorithms.accelerators.policy_gradient import ClosedPolicyGradient
from tianji.algorithms.actor_critic.model import ModelEvaluator
from tianji.algorithms.actor_critic.preprocessor import Preprocessor
from tianji.algorithms.dqn.loss import Transitions, dqn_loss
from tianji.algorithms.gradient import Autograd
from tianji.algorithms.impala.loss import UnrollPart, impala_loss
from tianji.algorithms.policy_gradient.loss import WeightedSteps, policy_gradient_objective
from tianji.algorithms.ppo.batch import Columns, EvaluatedBatch
from tianji.algorithms.ppo.loss import LossTerms, ppo_loss
from tianji.models.actions import Choices
from tianji.models.heads import CategoricalHead
from tianji.models.masks import legal_only
from tianji.models.tensors import flatten
from tianji.ops.td_errors import n_step_td_error

LOGITS = torch.tensor([[0.3, -1.2, 2.0, 0.5], [1.0, 1.5, -0.5, 0.0]])
MASK = torch.tensor([[True, True, False, True], [False, False, True, False]])
TERMS = LossTerms(clip=0.2, value_clip=0.3, value_loss=0.5, entropy=0.03, minibatch_rows=24.0)


def probabilities(logits, mask):
    """exp(z) over the sum of exp(z) of the legal options."""
    weights = [math.exp(z) if legal else 0.0 for z, legal in zip(logits, mask, strict=True)]
    return [weight / sum(weights) for weight in weights]


def test_log_probabilities_and_entropies_are_those_of_the_legal_options():
    head, masked = CategoricalHead(Choices((4,), ())), legal_only(LOGITS, MASK)
    rows = [probabilities(z, m) for z, m in zip(LOGITS.tolist(), MASK.tolist(), strict=True)]
    action = torch.tensor([[3], [2]])
    expected = [math.log(rows[0][3]), math.log(rows[1][2])]
    torch.testing.assert_close(head.log_prob(masked, action), torch.tensor(expected))
    entropies = [-sum(p * math.log(p) for p in row if p) for row in rows]
    torch.testing.assert_close(head.entropy(masked), torch.tensor(entropies))
    assert head.mode(masked).tolist() == [3, 2]


def test_the_divergence_of_two_masked_policies_counts_legal_options_alone():
    old, new = (legal_only(z, MASK).log_softmax(1) for z in (LOGITS, 0.5 * LOGITS + 0.1))
    found = (old.exp() * (old - new)).sum(1)
    rows = zip(LOGITS.tolist(), MASK.tolist(), strict=True)
    for row, (z, mask) in enumerate(rows):
        p, q = probabilities(z, mask), probabilities([0.5 * x + 0.1 for x in z], mask)
        expected = sum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a)
        assert float(found[row]) == pytest.approx(expected, abs=1e-6)


def test_choices_are_masked_side_by_side():
    head = CategoricalHead(Choices((2, 2), (2,)))
    logits, mask = torch.tensor([[0.3, -1.2, 2.0, 0.5]]), torch.tensor([[False, True, True, True]])
    second = probabilities([2.0, 0.5], [True, True])
    found = head.log_prob(legal_only(logits, mask), torch.tensor([[1, 1]]))
    assert float(found) == pytest.approx(math.log(second[1]), abs=1e-6)


def random_rig(name, action="discrete", **settings):
    rig = Rig(name, action=action, settings=settings, has_masks=True)
    vector = flatten(rig.model).vector_P
    vector.add_(0.3 * torch.randn(len(vector), generator=torch.Generator().manual_seed(1)))
    return rig


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("dueling", [True, False])
def test_the_target_of_dqn_takes_the_best_legal_action(double, dueling):
    rig = random_rig("dqn", double=double, dueling=dueling)
    target = copy.deepcopy(rig.model)
    flatten(target).vector_P.mul_(-0.7)
    one = transitions(rig.replay_batch(3)).update(0)
    _, found = dqn_loss(rig.model, target, one, rig.config.algorithm)
    online_q, target_q = (_unmasked(model, one.next_obs) for model in (rig.model, target))
    for row, mask in enumerate(one.next_obs["action_mask"].tolist()):
        legal = [a for a, is_legal in enumerate(mask) if is_legal]
        ranked = online_q if double else target_q
        best = max(legal, key=lambda a: float(ranked[row, a]))
        y = float(one.reward[row]) + float(one.discount[row]) * float(target_q[row, best])
        assert float(found.target_B[row]) == pytest.approx(y, abs=1e-5)


def _unmasked(model, obs):
    everything = torch.ones_like(obs["action_mask"])
    with torch.no_grad():
        return model({**obs, "action_mask": everything})


def transitions(batch):
    x = {name: torch.from_numpy(array) for name, array in batch.arrays.items()}
    obs, next_obs = (
        {"": x[prefix], "action_mask": x[f"{prefix}.action_mask"]} for prefix in ("obs", "next_obs")
    )
    weight = torch.ones_like(x["reward"])
    return Transitions(obs, next_obs, x["action"], x["reward"], x["discount"], weight)


def test_a_first_priority_is_the_error_against_the_best_legal_action():
    settings = {"sampling": "prioritized", "initial_priorities": "actors", "n_step": 1}
    rig = random_rig("dqn", **settings)
    unroll = rig.unroll(5)
    obs = {
        "": torch.from_numpy(unroll["obs"][:-1]).flatten(0, 1),
        "action_mask": torch.from_numpy(unroll["obs.action_mask"][:-1]).flatten(0, 1),
    }
    q = _unmasked(rig.model, obs).reshape(8, 4, 3).numpy()
    best = np.where(unroll["obs.action_mask"][:-1] != 0, q, -np.inf).max(-1)
    taken = np.take_along_axis(q, unroll["action"][..., None], -1)[..., 0]
    ends = (unroll["reward"], unroll["terminated"], unroll["truncated"], unroll["valid"])
    expected = n_step_td_error(
        taken.astype(np.float32), best.astype(np.float32), *ends, 1, 0.99, keeps_final=False
    )
    found = unroll["priority"][: len(expected)]
    np.testing.assert_allclose(found, np.abs(expected), rtol=1e-4, atol=1e-4)


def assert_equal_gradients(rig, closed, automatic):
    flat, found = flatten(rig.model), []
    for compute in (closed, automatic):
        flat.gradient_P.fill_(7.0)
        compute()
        found.append(flat.gradient_P.clone())
    assert found[1].abs().max() > 1e-3
    torch.testing.assert_close(*found, rtol=2e-3, atol=2e-5)


def test_ppo_in_closed_form_has_the_gradient_of_its_loss():
    for seed, action in enumerate(("discrete", "multidiscrete", "multibinary")):
        rig = random_rig("ppo", action)
        unroll = rig.unroll(seed, num_rows=24, num_envs=1)
        obs = {key: torch.from_numpy(unroll[name][:-1, 0]) for key, name in _NAMES.items()}
        action_BK = torch.from_numpy(unroll["action"][:, 0]).reshape(24, -1)
        evaluator, closed = ModelEvaluator(rig.model), ClosedActorCritic(rig.model)
        found = evaluator.evaluate(obs, action_BK.t())
        fast = closed.evaluate(closed.inputs(obs), closed.actions(action_BK))
        torch.testing.assert_close(fast, found)
        noise = torch.randn(4, 24, generator=torch.Generator().manual_seed(seed))
        old = found.log_prob_B + 0.1 * noise[0], noise[1], found.value_R + noise[2], found.value_R
        batch = EvaluatedBatch(obs, action_BK.t(), Columns(*old))
        same = batch._replace(inputs=closed.inputs(obs), action_KB=closed.actions(action_BK))
        prepared = ClosedPPO(closed).prepare(same, TERMS)
        plain = Autograd(flatten(rig.model), lambda *x, rig=rig: ppo_loss(rig.model, *x))
        assert_equal_gradients(
            rig,
            lambda closed=closed, one=prepared: ClosedPPO(closed).gradient(one, TERMS),
            lambda plain=plain, one=batch: plain.gradient(one, TERMS),
        )


_NAMES = {"": "obs", "action_mask": "obs.action_mask"}


def test_impala_in_closed_form_has_the_gradient_of_its_loss():
    rig = random_rig("impala", entropy=0.03)
    unroll = rig.unroll(2)
    experience = Preprocessor(rig.model, rig.spaces, rig.config).process(queue_batch(unroll))
    closed, plain = ClosedActorCritic(rig.model), ModelEvaluator(rig.model)

    def part(evaluator):
        order = experience.row_order()
        inputs = evaluator.inputs(experience.obs_rows(order))
        final_value = experience.final_value(evaluator)
        return UnrollPart(experience, order, inputs, experience.action_rows(), final_value)

    autograd = Autograd(flatten(rig.model), lambda *x: impala_loss(rig.model, *x))
    config = rig.config.algorithm
    assert_equal_gradients(
        rig,
        lambda: ClosedImpala(closed).gradient(part(closed), config),
        lambda: autograd.gradient(part(plain), config),
    )


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("dueling", [True, False])
def test_dqn_in_closed_form_has_the_gradient_of_its_loss(double, dueling):
    rig = random_rig("dqn", double=double, dueling=dueling)
    config, target = rig.config.algorithm, copy.deepcopy(rig.model)
    flatten(target).vector_P.mul_(-0.7)
    batch = transitions(rig.replay_batch(4))
    fast = ClosedDQN(rig.model, target)
    prepared = fast.prepare(batch, config)
    plain = Autograd(flatten(rig.model), lambda *x: dqn_loss(rig.model, target, *x))
    assert_equal_gradients(
        rig,
        lambda: fast.gradient(prepared.update(1), config),
        lambda: plain.gradient(batch.update(1), config),
    )


def test_the_policy_gradient_in_closed_form_has_the_gradient_of_its_objective():
    rig = random_rig("rennala-nigt")
    unroll = rig.unroll(2, num_rows=12, num_envs=1)
    steps = WeightedSteps(
        {key: torch.from_numpy(unroll[name][:-1, 0]) for key, name in _NAMES.items()},
        torch.from_numpy(unroll["action"][:, 0]).reshape(12, -1),
        torch.from_numpy(unroll["reward"][:, 0]),
    )
    plain = Autograd(flatten(rig.model), lambda *x: policy_gradient_objective(rig.model, *x))
    assert_equal_gradients(
        rig,
        lambda: ClosedPolicyGradient(rig.model).gradient(steps, None),
        lambda: plain.gradient(steps, None),
    )
