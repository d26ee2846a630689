"""What every algorithm owes an environment that says which actions are legal."""

import numpy as np
import pytest
import torch

from tests.fakes.experience import CHOICES_OF_SIZE, GATHERED, OBSERVATIONS, Rig
from tianji.envs.spaces import make_action_cast, observation_leaves

QUEUED = ("ppo", "impala")
NAMES = (*QUEUED, "dqn", "apex", *GATHERED)
POLICIES = (*QUEUED, "rennala-nigt")
CASES = [(name, "vector", "discrete") for name in NAMES]
CASES += [(name, obs, "discrete") for name in ("ppo", "dqn") for obs in OBSERVATIONS]
CASES += [(name, "vector", kind) for name in POLICIES for kind in ("multidiscrete", "multibinary")]
every_case = pytest.mark.parametrize(("name", "observation", "action"), dict.fromkeys(CASES))
DUELING = {"dueling": True, "sampling": "prioritized", "initial_priorities": "actors"}


def masked_rig(name, observation="vector", action="discrete", **values):
    return Rig(name, observation, action, has_masks=True, **values)


def assert_legal(action, mask):
    """Each choice of each action is one that the mask allows."""
    chosen = np.asarray(action).reshape(len(mask), -1)
    for k, (begin, end) in enumerate(CHOICES_OF_SIZE[mask.shape[1]]):
        legal = mask[:, begin:end]
        assert legal[np.arange(len(mask)), chosen[:, k]].all()


@every_case
def test_no_illegal_action_is_taken_while_acting(name, observation, action):
    rig = masked_rig(name, observation, action)
    for seed in range(8):
        unroll = rig.unroll(seed)
        for t in range(8):
            assert_legal(unroll["action"][t], unroll["obs.action_mask"][t])


@every_case
def test_no_illegal_action_is_taken_by_the_greedy_or_the_exported_policy(name, observation, action):
    rig = masked_rig(name, observation, action)
    rig.train(rig.batch(1))
    exported = rig.algorithm.export(rig.model, rig.spaces, rig.config)
    leaves = observation_leaves(rig.spaces.observation)
    start = getattr(rig.spaces.action, "start", 0)
    for seed in range(4):
        unroll = rig.unroll(seed)
        obs = {key: array[0] for key, array in unroll.items() if key.startswith("obs")}
        greedy = rig.acting.greedy(obs)
        assert_legal(greedy, obs["obs.action_mask"])
        tensors = [torch.from_numpy(obs[f"obs.{x.key}" if x.key else "obs"]) for x in leaves]
        with torch.no_grad():
            got = exported(*tensors).numpy()
        assert_legal(got - start, obs["obs.action_mask"])
        np.testing.assert_array_equal(got, make_action_cast(rig.spaces.action)(greedy))


@every_case
def test_training_with_masks_reports_finite_numbers(name, observation, action):
    rig = masked_rig(name, observation, action, normalize={"observations": True})
    before = rig.parameters()
    metrics = rig.train(rig.batch(1))
    assert not torch.equal(rig.parameters(), before)
    assert all(np.isfinite(value) and abs(value) < 1e6 for value in metrics.values())


@pytest.mark.parametrize("settings", [{}, DUELING])
def test_every_legal_action_is_explored_alike(settings):
    rig = masked_rig("dqn", settings={"epsilon_start": 1.0, **settings})
    unroll = rig.unroll(0, num_rows=400, num_envs=16)
    action, mask = unroll["action"], unroll["obs.action_mask"][:-1]
    for legal in ([0, 1, 1], [1, 1, 1], [1, 0, 1]):
        chosen = action[(mask == legal).all(-1)]
        shares = np.bincount(chosen, minlength=3) / len(chosen)
        assert (shares[np.array(legal) == 0] == 0).all()
        assert np.ptp(shares[np.array(legal) == 1]) < 0.1


@pytest.mark.parametrize("name", ["dqn", "apex"])
def test_first_priorities_know_nothing_of_illegal_actions(name):
    rig = masked_rig(name, settings=DUELING)
    unroll = rig.unroll(3)
    assert (unroll["q_best"] > -100).all() and (unroll["q_taken"] > -100).all()
    assert (unroll["q_best"] >= unroll["q_taken"]).all()


@pytest.mark.parametrize("name", QUEUED)
def test_with_lag_0_the_learner_finds_the_probabilities_that_actors_wrote(name):
    rig = masked_rig(name, action="multidiscrete")
    metrics = rig.train(rig.batch(1))
    assert metrics["approx_kl"] == pytest.approx(0.0, abs=1e-2)
    assert metrics.get("rho", 1.0) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_networks_do_not_see_the_masks(name):
    masked, plain = masked_rig(name), Rig(name)
    assert len(masked.parameters()) == len(plain.parameters())


@pytest.mark.parametrize("name", ["ppo", "impala", "dqn"])
def test_a_mask_that_allows_everything_changes_nothing(name):
    masked, plain = masked_rig(name), Rig(name)
    batch = masked.batch(1)
    for key, array in batch.arrays.items():
        if key.endswith("action_mask"):
            array[:] = 1
    without = {key: array for key, array in batch.arrays.items() if "action_mask" not in key}
    masked.train(batch)
    plain.train(type(batch)(without, batch.stamps, batch.num_items, batch.num_steps))
    assert torch.equal(masked.parameters(), plain.parameters())
