"""IMPALA's learner against the same loss, written plainly and differentiated automatically."""

import numpy as np
import pytest
import torch
from torch.distributions import Categorical

from tests.fakes.experience import Rig, queue_batch
from tianji.algorithms.impala.loss import PaddedPart
from tianji.models.tensors import flatten
from tianji.ops.returns import vtrace

FLAGS = ("terminated", "truncated", "valid")


def reference(rig, unroll):
    config = rig.config.algorithm
    T, N = unroll["valid"].shape
    outputs, value = rig.model({"": torch.from_numpy(unroll["obs"].reshape(-1, 4))})
    value = value.reshape(T + 1, N)
    policy = Categorical(logits=outputs[: T * N].reshape(T, N, -1))
    log_prob = policy.log_prob(torch.from_numpy(unroll["action"]))
    old = value.detach().numpy()
    flags = (unroll["terminated"], unroll["truncated"], unroll["valid"])
    log_ratio = log_prob.detach().numpy() - unroll["log_prob"]
    if config.correction == "none":
        log_ratio = np.zeros_like(log_ratio)
    clips = (config.trace_lambda, config.clip_rho, config.clip_c, config.clip_pg_rho)
    traced = vtrace(log_ratio, unroll["reward"], old[:-1], old[1:], *flags, config.gamma, *clips)
    valid = torch.from_numpy(unroll["valid"])
    advantage, target = torch.from_numpy(traced.advantage_TN), torch.from_numpy(traced.target_TN)
    losses = {
        "loss/policy": -(advantage * log_prob)[valid].mean(),
        "loss/value": 0.5 * (value[:-1] - target)[valid].square().mean(),
        "entropy": policy.entropy()[valid].mean(),
    }
    total = losses["loss/policy"] + config.value_loss * losses["loss/value"]
    total = total - config.entropy * losses["entropy"]
    gradients = torch.autograd.grad(total, list(rig.model.parameters()))
    return torch.cat([g.reshape(-1) for g in gradients]), losses


@pytest.mark.parametrize("correction", ["v-trace", "none"])
@pytest.mark.parametrize("activation", ["tanh", "gelu"])
def test_one_update_follows_the_gradient_of_the_written_loss(activation, correction):
    clips = {"trace_lambda": 0.7, "clip_rho": 0.9, "clip_c": 0.8, "clip_pg_rho": 1.2}
    settings = {"max_grad_norm": 1e9, "correction": correction, **clips}
    rig = Rig("impala", settings=settings, model={"activation": activation})
    unroll = rig.unroll(1)
    unroll["log_prob"] += np.random.default_rng(0).normal(0, 0.5, (8, 4)).astype(np.float32)
    expected, losses = reference(rig, unroll)
    metrics = rig.train(queue_batch(unroll))
    torch.testing.assert_close(flatten(rig.model).gradient_P, expected, rtol=1e-3, atol=1e-5)
    for name, value in losses.items():
        assert metrics[name] == pytest.approx(value.item(), rel=1e-4, abs=1e-5)


def test_a_batch_is_cut_along_its_environments():
    whole, parts = Rig("impala"), Rig("impala", settings={"minibatches": 3})
    unroll = whole.unroll(1)
    unroll["valid"][:] = True
    assert whole.count_updates(queue_batch(unroll)) == 1
    assert parts.count_updates(queue_batch(unroll)) == 3


@pytest.mark.parametrize("correction", ["v-trace", "none"])
def test_importance_weights_are_measured_even_where_they_do_not_count(correction):
    rig = Rig("impala", settings={"correction": correction})
    unroll = rig.unroll(1)
    unroll["valid"][:] = True
    assert rig.train(queue_batch(unroll))["rho_clipped"] == 0.0
    fresh = Rig("impala", settings={"correction": correction})
    unroll["log_prob"][:4] -= np.log(2.0).astype(np.float32)
    metrics = fresh.train(queue_batch(unroll))
    assert metrics["rho"] == pytest.approx(1.5, rel=1e-4)
    assert metrics["rho_clipped"] == 0.5


@pytest.mark.parametrize("correction", ["v-trace", "none"])
def test_parts_of_a_fixed_shape_are_traced_as_others_are(correction):
    """As on a GPU: all steps as tensors, those that are not valid with a weight of 0."""
    clips = {"trace_lambda": 0.7, "clip_rho": 0.9, "clip_c": 0.8, "clip_pg_rho": 1.2}
    rig = Rig("impala", settings={"correction": correction, **clips})
    unroll = rig.unroll(1)
    unroll["valid"][:] = True
    unroll["truncated"][:] = False
    unroll["log_prob"] += np.random.default_rng(0).normal(0, 0.5, (8, 4)).astype(np.float32)
    config, shape = rig.config.algorithm, unroll["valid"].shape
    tensors = {name: torch.from_numpy(unroll[name]) for name in (*FLAGS, "log_prob", "reward")}
    value_R = torch.from_numpy(np.random.default_rng(1).normal(size=36).astype(np.float32))
    log_prob_B = torch.full((32,), -0.7)
    part = PaddedPart(
        {}, torch.zeros(32, 1), tensors["log_prob"], tensors["reward"],
        *(tensors[name] for name in FLAGS),
        final_value_TN=torch.zeros(shape), has_final_TN=torch.zeros(shape, dtype=torch.bool),
        weight_B=torch.ones(32),
    )  # fmt: skip
    found = part.trace(config, log_prob_B, torch.zeros(32), value_R)
    log_ratio = np.float32(-0.7) - unroll["log_prob"]
    np.testing.assert_allclose(found.ratio_B.numpy().reshape(shape), np.exp(log_ratio), rtol=1e-5)
    if correction == "none":
        log_ratio = np.zeros_like(log_ratio)
    value = value_R.numpy().reshape(9, 4)
    flags = (unroll[name] for name in FLAGS)
    steps = (unroll["reward"], value[:-1], value[1:], *flags)
    expected = vtrace(log_ratio, *steps, config.gamma, *clips.values())
    for name in ("target", "advantage"):
        traced = getattr(found, f"{name}_B").numpy().reshape(shape)
        np.testing.assert_allclose(traced, getattr(expected, f"{name}_TN"), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("optimizer", ["adam", "rmsprop"])
def test_both_optimisers_train(optimizer):
    rig = Rig("impala", settings={"optimizer": optimizer})
    before = rig.parameters()
    rig.train(rig.batch(1))
    assert not torch.equal(rig.parameters(), before)
