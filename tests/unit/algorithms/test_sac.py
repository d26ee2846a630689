"""SAC's actors and learner; its losses are in tests/numerics/test_soft_actor_critic.py."""

import numpy as np
import pytest
import torch

from tests.fakes.experience import Rig
from tianji.algorithms.sac.config import SACConfig
from tianji.config.run import RunConfig
from tianji.models.tensors import Snapshot, flatten

ONE = {"updates_per_version": 1}


def critics_of(rig):
    return rig.update.state()["critics"]


def test_only_the_policy_is_published():
    rig = Rig("sac")
    snapshot = Snapshot(rig.model)
    assert snapshot.nbytes == 4 * sum(p.numel() for p in rig.model.parameters())
    assert snapshot.nbytes < 4 * len(critics_of(rig))


def test_an_update_moves_policy_critics_targets_and_temperature():
    rig = Rig("sac", settings={**ONE, "target_tau": 0.25})
    before, policy = rig.update.state(), rig.parameters()
    assert torch.equal(before["critics"], before["targets"])
    rig.train(rig.batch(1))
    after = rig.update.state()
    assert not torch.equal(rig.parameters(), policy)
    assert after["temperature"] != before["temperature"]
    expected = before["critics"] + 0.25 * (after["critics"] - before["critics"])
    torch.testing.assert_close(after["targets"], expected)
    assert (after["targets"] - before["targets"]).abs().max() > 0


def test_every_step_of_every_environment_has_an_update():
    assert SACConfig(unroll_length=4).num_updates(num_envs=8) == 32
    assert SACConfig(updates_per_version=3).num_updates(num_envs=8) == 3


def test_the_first_critics_depend_on_the_seed_alone():
    rig = Rig("sac")
    torch.manual_seed(123)
    again = rig.algorithm.build_update(rig.model, rig.spaces, rig.config)
    assert torch.equal(again.state()["critics"], critics_of(rig))
    assert not torch.equal(critics_of(Rig("sac", seed=2)), critics_of(rig))


def test_the_first_critics_rate_all_actions_alike():
    rig = Rig("sac")
    critics, transitions = rig.update._networks.critics, rig.update._read(rig.batch(1).arrays)
    for unit in (-1.0, 0.0, 1.0):
        action = torch.full_like(transitions.action[0], unit)
        rated = critics({key: x[0] for key, x in transitions.obs.items()}, action)
        assert max(q.abs().max() for q in rated) < 0.05


def test_critics_and_targets_normalise_observations_like_the_policy():
    rig = Rig("sac", "tree", normalize={"observations": True})
    rig.train(rig.batch(1))
    normalizer = rig.model.net.encoder.normalizer
    assert normalizer.mean_V.any()
    for critics in (rig.update._networks.critics, rig.update._targets.model):
        assert critics.net.encoder.normalizer is normalizer


def test_critics_see_actions_between_minus_one_and_one():
    rig = Rig("sac")
    arrays = dict(rig.batch(1).arrays)
    arrays["action"] = np.full_like(arrays["action"], 0.5)
    arrays["action"][..., 1] = -0.25
    seen = rig.update._read(arrays).action
    assert seen[..., 0].unique().tolist() == [1.0] and seen[..., 1].unique().tolist() == [-0.5]


def test_noise_differs_from_batch_to_batch_and_repeats_with_the_seed():
    rig, same, other = Rig("sac"), Rig("sac"), Rig("sac", seed=2)
    drawn = [one.update._read(one.batch(1).arrays) for one in (rig, same, other)]
    assert torch.equal(drawn[0].noise, drawn[1].noise)
    assert not torch.equal(drawn[0].noise, drawn[0].next_noise)
    assert not torch.equal(drawn[0].noise, drawn[2].noise)
    assert not torch.equal(rig.update._read(rig.batch(1).arrays).noise, drawn[0].noise)


def acted(rig, steps_before):
    unroll = rig.unroll(1, num_rows=100, num_envs=20)
    rig.acting.begin(np.random.default_rng(0), unroll, 0, steps_before)
    given = [rig.acting.act(unroll, t).copy() for t in range(100)]
    np.testing.assert_array_equal(unroll["action"], given)  # as the environment gets them
    return unroll["action"]


def test_the_warm_up_draws_actions_uniformly():
    rig = Rig("sac", settings={"warmup_steps": 1000})
    flatten(rig.model).vector_P.zero_()
    rig.model.net.outputs[0].bias.data[:2] = 10.0  # the policy would be at the upper bound
    uniform = acted(rig, 999)
    assert np.abs(uniform).max() <= 0.5 and uniform.mean() == pytest.approx(0.0, abs=0.02)
    assert uniform.std() == pytest.approx(0.5 / np.sqrt(3), abs=0.01)
    assert acted(rig, 1000).min() > 0.49


def test_actions_of_the_warm_up_are_held():
    rig = Rig("sac", settings={"warmup_steps": 1000, "warmup_hold": 3})
    actions = acted(rig, 0)
    for start in range(0, len(actions), 3):
        held = actions[start : start + 3]
        np.testing.assert_array_equal(held, np.broadcast_to(held[:1], held.shape))
    assert (actions[2] != actions[3]).all()


def test_greedy_actions_squash_the_mean_into_the_bounds():
    rig = Rig("sac")
    flatten(rig.model).vector_P.zero_()
    rig.model.net.outputs[0].bias.data[:2] = torch.tensor([0.0, 1.0])
    greedy = rig.acting.greedy({"obs": np.zeros((3, 4), np.float32)})
    np.testing.assert_allclose(greedy, [[0.0, 0.5 * np.tanh(1.0)]] * 3, rtol=1e-6)


def test_users_networks_are_trained_with_critics_of_ours():
    factory = {"factory": "tests.unit.models.user_networks:squashed"}
    rig = Rig("sac", settings=ONE, model=factory)
    before = rig.parameters()
    assert np.isfinite(rig.train(rig.batch(1))["q_mean"])
    assert not torch.equal(rig.parameters(), before)


@pytest.mark.parametrize(("asked", "expected"), [("auto", -2.0), (-0.5, -0.5)])
def test_the_target_entropy_is_minus_the_numbers_of_an_action(asked, expected):
    assert Rig("sac", settings={"target_entropy": asked}).update._target_entropy == expected


def test_networks_are_those_of_the_paper_unless_the_run_says_otherwise():
    model = RunConfig(algorithm="sac").model
    assert (model.hidden, model.activation) == ((256, 256), "relu")
    assert RunConfig(algorithm="sac", model={"hidden": (32,)}).model.hidden == (32,)


@pytest.mark.parametrize(("precision", "expected"), [("auto", False), ("bfloat16", True)])
def test_the_learner_computes_in_float32_unless_asked(precision, expected):
    rig = Rig("sac", model={"precision": precision})
    assert rig.update._networks.critics.net.is_bfloat16 is expected
    assert rig.model.net.is_bfloat16 is expected


def test_gradients_are_not_clipped():
    """The first moment of Adam is a tenth of the first gradient."""
    rig = Rig("sac", settings=ONE)
    batch = rig.batch(1)
    batch.arrays["reward"][:] *= 1e3
    norm = rig.train(batch)["grad_norm"]
    moment = rig.update.state()["optimizer/m"]
    assert norm > 10 and float(moment.norm()) == pytest.approx(0.1 * norm, rel=1e-3)


@pytest.mark.parametrize(("asked", "expected"), [("auto", 1.0), (0.2, 0.2)])
def test_the_temperature_starts_at_1_unless_another_is_given(asked, expected):
    rig = Rig("sac", settings={"initial_temperature": asked})
    logarithm = float(rig.update.state()["temperature"])
    assert np.exp(logarithm) == pytest.approx(expected)
