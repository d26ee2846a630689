"""DQN's learner against the same loss, written plainly and differentiated automatically."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.fakes.experience import Rig
from tianji.algorithms.dqn.config import DQNConfig
from tianji.models.tensors import flatten

ONE = {"updates_per_version": 1, "max_grad_norm": 1e9}


def reference(rig, arrays, target_model):
    config = rig.config.algorithm
    x = {name: torch.from_numpy(array[0]) for name, array in arrays.items()}
    q = rig.model({"": x["obs"]}).gather(1, x["action"][:, None])[:, 0]
    with torch.no_grad():
        next_target = target_model({"": x["next_obs"]})
        chooser = rig.model({"": x["next_obs"]}) if config.double else next_target
        best = chooser.argmax(1, keepdim=True)
        target = x["reward"] + x["discount"] * next_target.gather(1, best)[:, 0]
    loss = F.huber_loss(q, target) if config.loss == "huber" else F.mse_loss(q, target) / 2
    gradients = torch.autograd.grad(loss, list(rig.model.parameters()))
    return torch.cat([g.reshape(-1) for g in gradients]), loss.detach(), q.detach(), target


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("dueling", [True, False])
@pytest.mark.parametrize(("loss", "activation"), [("huber", "relu"), ("mse", "gelu")])
def test_one_update_follows_the_gradient_of_the_written_loss(double, dueling, loss, activation):
    settings = {**ONE, "double": double, "dueling": dueling, "loss": loss}
    rig = Rig("dqn", settings=settings, model={"activation": activation})
    target_model = copy.deepcopy(rig.model)
    flatten(rig.model).vector_P.mul_(1.3)  # so that online and target differ
    batch = rig.batch(1)
    expected, loss_value, q, target = reference(rig, batch.arrays, target_model)
    metrics = rig.train(batch)
    torch.testing.assert_close(flatten(rig.model).gradient_P, expected, rtol=1e-3, atol=1e-5)
    assert metrics["loss/td"] == pytest.approx(float(loss_value), rel=1e-4)
    assert metrics["q_mean"] == pytest.approx(float(q.mean()), rel=1e-3, abs=1e-5)
    assert metrics["q_max"] == pytest.approx(float(q.max()), rel=1e-3, abs=1e-5)
    assert metrics["target_mean"] == pytest.approx(float(target.mean()), rel=1e-3, abs=1e-5)


def target_of(rig):
    return rig.update.state()["target/parameters"]


def test_a_hard_target_is_copied_every_so_many_updates():
    rig = Rig("dqn", settings={"updates_per_version": 1, "target_period_updates": 3})
    start = rig.parameters()
    for update in range(1, 7):
        rig.train(rig.batch(update))
        assert torch.equal(target_of(rig), rig.parameters()) is (update % 3 == 0)
        if update < 3:
            assert torch.equal(target_of(rig), start)


def test_a_soft_target_moves_a_share_of_the_way():
    rig = Rig("dqn", settings={"updates_per_version": 1, "target_tau": 0.25})
    start = rig.parameters()
    rig.train(rig.batch(1))
    expected = start + 0.25 * (rig.parameters() - start)
    torch.testing.assert_close(target_of(rig), expected)


def test_normalisation_is_the_same_for_both_networks():
    rig = Rig("dqn", "tree", normalize={"observations": True})
    rig.train(rig.batch(1))
    target = rig.update._target.model
    assert target.net.encoder.normalizer is rig.model.net.encoder.normalizer


def test_random_actions_become_rarer_with_the_steps_of_the_run():
    settings = {"epsilon_start": 1.0, "epsilon_final": 0.1, "epsilon_decay_steps": 1000}
    rig = Rig("dqn", settings=settings)
    unroll = rig.unroll(1, num_rows=200, num_envs=50)
    greedy = rig.acting.greedy({"obs": unroll["obs"][:-1].reshape(-1, 4)}).reshape(200, 50)
    for steps_before, epsilon in [(0, 1.0), (500, 0.55), (1000, 0.1), (10**9, 0.1)]:
        rig.acting.begin(np.random.default_rng(0), unroll, 0, steps_before)
        for t in range(200):
            rig.acting.act(unroll, t)
        # A third of the random actions are the best ones by chance.
        share = (unroll["action"] != greedy).mean() * 3 / 2
        assert share == pytest.approx(epsilon, abs=0.03)


def test_random_actions_go_on_for_as_long_as_asked_and_are_no_more_frequent():
    settings = {"epsilon_start": 0.4, "epsilon_final": 0.4, "epsilon_hold": 4}
    rig = Rig("dqn", settings=settings)
    unroll = rig.unroll(1, num_rows=200, num_envs=50)
    greedy = rig.acting.greedy({"obs": unroll["obs"][:-1].reshape(-1, 4)}).reshape(50, 4, 50)
    rig.acting.begin(np.random.default_rng(0), unroll, 0, 0)
    for t in range(200):
        rig.acting.act(unroll, t)
    actions = unroll["action"].reshape(50, 4, 50)
    is_other = actions != greedy
    assert is_other.mean() * 3 / 2 == pytest.approx(0.4, abs=0.05)
    # Where any action of four differs from the best one, all four are the same random one.
    is_random = is_other.any(1)
    held = np.broadcast_to(actions[:, :1], actions.shape)
    assert (actions == held).transpose(0, 2, 1)[is_random].all()


def test_user_networks_are_trained():
    factory = {"factory": "tests.unit.models.user_networks:q_values"}
    rig = Rig("dqn", settings=ONE, model=factory)
    batch = rig.batch(1)
    expected, *_ = reference(rig, batch.arrays, copy.deepcopy(rig.model))
    assert rig.train(batch)["grad_norm"] == pytest.approx(float(expected.norm()), rel=1e-3)


def test_dueling_ranks_actions_by_their_advantages():
    rig = Rig("dqn", settings={"dueling": True})
    obs = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    with torch.no_grad():
        q = rig.model({"": torch.from_numpy(obs)})
    np.testing.assert_array_equal(rig.acting.greedy({"obs": obs}), q.argmax(1).numpy())


def test_asking_for_copies_of_the_target_turns_the_moving_target_off():
    assert DQNConfig().target_tau == 0.005
    assert DQNConfig(target_period_updates=100).target_tau is None
    both = DQNConfig(target_period_updates=100, target_tau=0.01)
    assert (both.target_period_updates, both.target_tau) == (100, 0.01)


def test_prioritised_items_are_weighed_and_give_back_their_errors():
    rig = Rig("dqn", settings={**ONE, "sampling": "prioritized"})
    target_model = copy.deepcopy(rig.model)
    batch = rig.batch(1)
    batch.arrays["weight"] = np.zeros_like(batch.arrays["reward"])
    batch.arrays["weight"][0, 0] = 1.0
    _, _, q, target = reference(rig, batch.arrays, target_model)
    one = {name: array[:, :1] for name, array in batch.arrays.items()}
    alone, *_ = reference(rig, one, target_model)
    rig.train(batch)
    num_rows = batch.arrays["reward"].shape[1]
    torch.testing.assert_close(
        flatten(rig.model).gradient_P * num_rows, alone, rtol=1e-3, atol=1e-5
    )
    priorities = rig.update.priorities()
    np.testing.assert_allclose(priorities, (q - target).abs().numpy(), rtol=1e-3, atol=1e-5)
    assert rig.update.priorities() is None, "they are given back once"


def test_without_priorities_nothing_is_given_back():
    rig = Rig("dqn", settings=ONE)
    rig.train(rig.batch(1))
    assert rig.update.priorities() is None


def test_a_version_that_was_cut_short_gives_no_priorities_back():
    rig = Rig("dqn", settings={"updates_per_version": 2, "sampling": "prioritized"})
    minibatches = rig.update.minibatches(rig.batch(1), 0.0)
    first = next(minibatches)
    first.gradient()
    first.step()
    assert rig.update.metrics()["grad_norm"] > 0
    assert rig.update.priorities() is None


def test_the_targets_buffers_are_part_of_the_state():
    rig, other = Rig("dqn", settings=ONE), Rig("dqn", settings=ONE, seed=2)
    for one in (rig, other):
        one.update._target.model.register_buffer("seen", torch.zeros(2))
    rig.update._target.model.seen += 3.0
    other.update.load_state(rig.update.state())
    assert other.update._target.model.seen.tolist() == [3.0, 3.0]
