"""PPO's learner against the same loss, written plainly and differentiated automatically."""

import copy

import numpy as np
import pytest
import torch
from torch.distributions import Categorical, Independent, Normal

from tests.fakes.experience import Rig, queue_batch
from tianji.algorithms.ppo.batch import part_sizes
from tianji.models.tensors import flatten
from tianji.ops.returns import gae
from tianji.types import PLACE, Batch, Stamp

SETTINGS = {
    "epochs": 1,
    "minibatch_size": 32,
    "entropy": 0.03,
    "value_clip": 0.05,
    "gae_lambda": 0.9,
    "max_grad_norm": 1e9,
}


def policy_of(rig, outputs):
    if rig.spaces.action.shape == ():
        return Categorical(logits=outputs)
    return Independent(Normal(outputs, rig.model.head.log_std_A.exp()), 1)


def reference_gradient(rig, unroll, before):
    """The gradient of an update, by the formula in the module's docstring. `before` is the model
    when the batch was taken, `rig.model` the one that is updated."""
    config = rig.config.algorithm
    T, N = unroll["valid"].shape
    valid = torch.from_numpy(unroll["valid"].reshape(-1))
    obs = {"": torch.from_numpy(unroll["obs"].reshape(-1, 4))}
    action = torch.from_numpy(unroll["action"].reshape(T * N, *rig.spaces.action.shape))[valid]

    def evaluate(model):
        outputs, value = model(obs)
        return outputs[: T * N][valid], value.reshape(T + 1, N)

    with torch.no_grad():
        outputs, old = evaluate(before)
        proximal = policy_of(rig, outputs).log_prob(action)
    flags = (unroll["terminated"], unroll["truncated"], unroll["valid"])
    advantage = torch.from_numpy(
        gae(unroll["reward"], old[:-1].numpy(), old[1:].numpy(), *flags, config.gamma, 0.9)
    ).reshape(-1)[valid]
    old = old[:-1].reshape(-1)[valid]
    target = advantage + old
    advantage = (advantage - advantage.mean()) / advantage.std(correction=0)

    outputs, value = evaluate(rig.model)
    policy, value = policy_of(rig, outputs), value[:-1].reshape(-1)[valid]
    behaviour = torch.from_numpy(unroll["log_prob"].reshape(-1))[valid]
    weight = (proximal - behaviour).exp().clamp(max=config.max_behaviour_weight)
    ratio = (policy.log_prob(action) - (proximal if config.decoupled else behaviour)).exp()
    clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
    surrogate = torch.minimum(ratio * advantage, clipped * advantage)
    policy_loss = -(surrogate * weight if config.decoupled else surrogate).mean()
    moved = old + (value - old).clamp(-config.value_clip, config.value_clip)
    value_loss = torch.maximum((value - target) ** 2, (moved - target) ** 2).mean()
    loss = policy_loss + config.value_loss * value_loss - config.entropy * policy.entropy().mean()
    gradients = torch.autograd.grad(loss, list(rig.model.parameters()))
    losses = {"loss/policy": policy_loss.item(), "loss/value": value_loss.item()}
    return torch.cat([g.reshape(-1) for g in gradients]), losses


def lagging_unroll(rig):
    unroll = rig.unroll(1)
    unroll["log_prob"] += np.random.default_rng(0).normal(0, 0.5, (8, 4)).astype(np.float32)
    return unroll


@pytest.mark.parametrize("decoupled", [True, False])
@pytest.mark.parametrize("action", ["discrete", "box"])
@pytest.mark.parametrize("activation", ["tanh", "gelu"])
def test_one_update_follows_the_gradient_of_the_written_loss(decoupled, action, activation):
    settings = {**SETTINGS, "decoupled": decoupled}
    rig = Rig("ppo", action=action, settings=settings, model={"activation": activation})
    unroll = lagging_unroll(rig)
    expected, losses = reference_gradient(rig, unroll, rig.model)
    metrics = rig.train(queue_batch(unroll))
    torch.testing.assert_close(flatten(rig.model).gradient_P, expected, rtol=1e-3, atol=1e-5)
    assert metrics["grad_norm"] == pytest.approx(float(expected.norm()), rel=1e-3)
    for name, loss in losses.items():
        assert metrics[name] == pytest.approx(loss, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("decoupled", [True, False])
def test_later_updates_are_held_to_the_policy_and_values_of_when_the_batch_was_taken(decoupled):
    settings = {**SETTINGS, "decoupled": decoupled, "learning_rate": 0.02}
    rig, once = Rig("ppo", settings={**settings, "epochs": 2}), Rig("ppo", settings=settings)
    before = copy.deepcopy(rig.model)
    unroll = lagging_unroll(rig)
    once.train(queue_batch(unroll))
    expected, _ = reference_gradient(once, unroll, before)
    metrics = rig.train(queue_batch(unroll))
    assert metrics["clip_fraction"] > 0.05
    torch.testing.assert_close(flatten(rig.model).gradient_P, expected, rtol=1e-3, atol=1e-5)


def in_two(unroll, origins=(0, 0)):
    """Return the unroll as two of half its length; origins: when their environments were reset."""
    half = len(unroll["valid"]) // 2
    arrays = {
        name: np.concatenate([x[: half + len(x) % 2], x[half:]], 1)
        for name, x in unroll.items()
        if name != "row_ns"
    }
    places = [[origins[0], 0, half], [origins[1], half, half]]
    arrays[PLACE] = np.repeat(places, unroll["valid"].shape[1], 0)
    stamps = tuple(Stamp(0, round_, 0, 0, 0, 0, 0) for round_ in range(2))
    return Batch(arrays, stamps, 2, int(np.count_nonzero(unroll["valid"])))


def test_two_short_unrolls_are_worth_a_long_one():
    rigs = [Rig("ppo", settings=SETTINGS) for _ in range(3)]
    unroll = lagging_unroll(rigs[0])
    given = [queue_batch(unroll), in_two(unroll), in_two(unroll, origins=(0, 1))]
    for rig, batch in zip(rigs, given, strict=True):
        rig.train(batch)
    long, short, reset = (flatten(rig.model).gradient_P for rig in rigs)
    torch.testing.assert_close(short, long, rtol=1e-3, atol=1e-5)
    assert not torch.allclose(reset, long, rtol=1e-2), "an actor that began anew does not go on"


def test_lag_is_corrected_by_weights_that_are_cut():
    rig = Rig("ppo", settings={"max_behaviour_weight": 1.5})
    unroll = rig.unroll(1)
    unroll["valid"][:] = True
    unroll["log_prob"][:4] -= np.log(1.25).astype(np.float32)
    unroll["log_prob"][4:] -= np.log(9.0).astype(np.float32)
    assert rig.train(queue_batch(unroll))["behaviour_weight"] == pytest.approx((1.25 + 1.5) / 2)


def test_without_lag_weights_are_one():
    rig = Rig("ppo")
    assert rig.train(rig.batch(1))["behaviour_weight"] == pytest.approx(1.0, abs=1e-5)


def test_a_batch_makes_epochs_times_minibatches_updates_however_many_rows_are_valid():
    rig = Rig("ppo", settings={"epochs": 3, "minibatch_size": 10})
    for seed in range(3):
        assert rig.count_updates(rig.batch(seed)) == 3 * 4


@pytest.mark.parametrize(
    ("num_rows", "num_parts", "sizes"),
    [(256, 1, [256]), (10, 4, [3, 3, 2, 2]), (8, 4, [2, 2, 2, 2]), (3, 4, [1, 1, 1])],
)
def test_parts_are_nearly_equal_and_lose_no_row(num_rows, num_parts, sizes):
    assert part_sizes(num_rows, num_parts) == sizes


def test_every_epoch_sees_every_row_once_in_an_order_of_its_own():
    rig = Rig("ppo", settings={"epochs": 2, "minibatch_size": 8})
    seen = []
    gradient = rig.update._gradient.gradient

    def watching(minibatch, terms):
        seen.append(minibatch.inputs["features"].clone())
        return gradient(minibatch, terms)

    unroll = rig.unroll(1)
    rig.update._gradient.gradient = watching
    rig.train(queue_batch(unroll))
    valid = torch.from_numpy(unroll["obs"][:-1][unroll["valid"]])
    epochs = torch.cat(seen).split(len(valid))
    assert len(epochs) == 2
    for epoch in epochs:
        torch.testing.assert_close(_sorted(epoch), _sorted(valid))
    assert not torch.equal(epochs[0], epochs[1])


def _sorted(rows):
    return rows[rows[:, 0].argsort()]


def test_the_epochs_left_are_skipped_once_the_policy_moved_far_enough():
    far = Rig("ppo", settings={"epochs": 8, "target_kl": 1e-4, "learning_rate": 0.01})
    near = Rig("ppo", settings={"epochs": 8, "target_kl": 100.0, "learning_rate": 0.01})
    updates = far.count_updates(far.batch(1))
    assert 2 <= updates < 16 == near.count_updates(near.batch(1))


def test_a_version_of_any_length_can_be_cut_short_at_once():
    """Nothing is allocated for epochs that have not begun: a billion of them would not fit."""
    rig = Rig("ppo", settings={"epochs": 10**9})
    minibatch = next(rig.update.minibatches(rig.batch(1), 0.0))
    minibatch.gradient()
    minibatch.step()
    assert rig.update.metrics()["grad_norm"] > 0


def test_schedules_follow_progress():
    rig = Rig("ppo", settings={"learning_rate": 1.0, "learning_rate_final": 0.0})
    before = rig.parameters()
    assert rig.train(rig.batch(1), progress=1.0)["learning_rate"] == 0.0
    assert torch.equal(rig.parameters(), before)
    assert rig.train(rig.batch(1), progress=0.25)["learning_rate"] == 0.75


def test_clip_fraction_counts_ratios_beyond_the_clip_of_the_moment():
    settings = {"clip": 100.0, "clip_final": 1e-9, "epochs": 2, "learning_rate": 0.01}
    start, end = (Rig("ppo", settings=settings) for _ in range(2))
    assert start.train(start.batch(1), progress=0.0)["clip_fraction"] == 0.0
    assert end.train(end.batch(1), progress=1.0)["clip_fraction"] > 0.4


def test_values_that_explain_the_targets_are_reported_so():
    rig = Rig("ppo", settings={"gamma": 0.0, "learning_rate": 0.02, "epochs": 200})
    unroll = rig.unroll(1)
    unroll["reward"][:] = unroll["obs"][:-1, :, 0]
    first = rig.train(queue_batch(unroll))["explained_variance"]
    rig.unroll(1)
    assert rig.train(queue_batch(unroll))["explained_variance"] > 0.95 > first


def test_user_networks_are_trained():
    factory = {"factory": "tests.unit.models.user_networks:WithPolicy"}
    rig = Rig("ppo", settings=SETTINGS, model=factory)
    unroll = rig.unroll(1)
    expected, _ = reference_gradient(rig, unroll, rig.model)
    norm = rig.train(queue_batch(unroll))["grad_norm"]
    assert norm == pytest.approx(float(expected.norm()), rel=1e-3)
