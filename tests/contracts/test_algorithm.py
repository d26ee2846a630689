"""What every algorithm owes the rooms around it, whatever the spaces."""

import copy
import subprocess
import sys

import numpy as np
import pytest
import torch

from tests.fakes.experience import (
    ACTIONS,
    DESCENDING,
    GATHERED,
    OBSERVATIONS,
    REPLAYED,
    Rig,
    queue_batch,
)
from tianji.algorithms.interface import QueueCadence
from tianji.algorithms.memory import state_size
from tianji.envs.spaces import make_action_cast, observation_leaves
from tianji.errors import TrainingDiverged
from tianji.models.tensors import Snapshot
from tianji.types import Batch

REMEMBERING = ("ppo+gru", "ppo+lstm", "impala+gru")
QUEUED = ("ppo", "impala", *REMEMBERING)
STEPPED = (*QUEUED, *REPLAYED)
NAMES = (*STEPPED, *GATHERED, *DESCENDING)
POLICIES = (*QUEUED, "rennala-nigt", "a3c")
Q_VALUES = ("dqn", "apex", "gorila")
CASES = [(name, obs, "discrete") for name in (*POLICIES, *Q_VALUES) for obs in OBSERVATIONS]
CASES += [
    (name, "vector", action) for name in POLICIES for action in ACTIONS if action != "discrete"
]
CASES += [("sac", obs, "box") for obs in OBSERVATIONS]

every_algorithm = pytest.mark.parametrize("name", NAMES)
whose_batches_are_steps = pytest.mark.parametrize("name", STEPPED)
every_case = pytest.mark.parametrize(("name", "observation", "action"), CASES)


def test_no_record_imports_torch():
    code = (
        "import sys\n"
        "from tianji.algorithms.registry import load_algorithm\n"
        "from tianji.config.run import RunConfig\n"
        f"for name in {[name for name in NAMES if name not in REMEMBERING]}:\n"
        "    load_algorithm(name).cadence(RunConfig(algorithm=name))\n"
        "    assert 'torch' not in sys.modules, name\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@whose_batches_are_steps
def test_a_version_takes_whole_rounds(name):
    rig = Rig(name)
    cadence = rig.algorithm.cadence(rig.config)
    assert cadence.steps_per_version % (rig.config.num_envs * cadence.unroll_length) == 0
    if isinstance(cadence, QueueCadence):
        assert (cadence.ratio, cadence.lookahead, cadence.warmup_steps) == (1.0, 1, 0)
    else:
        items = cadence.ratio * cadence.steps_per_version
        assert items == rig.config.algorithm.batch_size * cadence.num_updates


@every_case
def test_acting_gives_actions_of_the_space(name, observation, action):
    rig = Rig(name, observation, action)
    unroll = rig.unroll(1)
    given = rig.acting.act(unroll, 0)
    for one in make_action_cast(rig.spaces.action)(given):
        assert rig.spaces.action.contains(one)
    greedy = rig.greedy({k: a[0] for k, a in unroll.items() if k.startswith("obs")})
    for one in make_action_cast(rig.spaces.action)(greedy):
        assert rig.spaces.action.contains(one)


@every_case
def test_acting_is_a_function_of_the_generator(name, observation, action):
    rig = Rig(name, observation, action)
    np.testing.assert_array_equal(rig.unroll(5)["action"], rig.unroll(5)["action"])
    assert (rig.unroll(5)["action"] != rig.unroll(6)["action"]).any()


@every_algorithm
def test_two_halves_can_wait_for_inference_at_once(name):
    """Both submit their observations before either collects its actions."""
    whole = Rig(name)
    halves = [Rig(name) for _ in range(2)]
    unrolls = [rig.unroll(seed) for seed, rig in enumerate(halves)]
    expected = [whole.unroll(seed)["action"] for seed in range(2)]
    for seed, (rig, unroll) in enumerate(zip(halves, unrolls, strict=True)):
        unroll["action"][:] = -1
        rig.acting.begin(np.random.default_rng(seed), unroll, 0, 0)
    for t in range(8):
        for rig, unroll in zip(halves, unrolls, strict=True):
            rig.acting.submit(unroll, t)
        for rig, unroll in zip(halves, unrolls, strict=True):
            rig.acting.collect(unroll, t)
    np.testing.assert_array_equal([unroll["action"] for unroll in unrolls], expected)


@every_case
def test_training_moves_the_parameters_and_reports_finite_numbers(name, observation, action):
    rig = Rig(name, observation, action)
    before = rig.parameters()
    metrics = rig.train(rig.batch(1))
    assert not torch.equal(rig.parameters(), before)
    assert {"grad_norm", "learning_rate"} < set(metrics)
    assert all(type(value) is float and np.isfinite(value) for value in metrics.values())


@every_algorithm
@pytest.mark.parametrize("normalize", [False, True])
def test_resuming_is_exact(name, normalize):
    """2N updates are N updates, save, load, N updates, bit for bit."""
    settings = {"observations": normalize, "rewards": normalize and name not in REPLAYED}
    whole, half = (Rig(name, normalize=settings) for _ in range(2))
    batches = [whole.batch(seed) for seed in range(4)]
    for batch in batches[:2]:
        whole.train(batch)
    weights, state = copy.deepcopy(whole.model.state_dict()), whole.update.state()
    for batch in batches[2:]:
        whole.train(batch)
    half.model.load_state_dict(weights)
    half.update.load_state(state)
    for batch in batches[2:]:
        half.train(batch)
    assert torch.equal(half.parameters(), whole.parameters())
    torch.testing.assert_close(half.model.state_dict(), whole.model.state_dict(), rtol=0, atol=0)
    torch.testing.assert_close(half.update.state(), whole.update.state(), rtol=0, atol=0)


@every_algorithm
def test_state_is_a_copy(name):
    rig = Rig(name, normalize={"observations": True})
    rig.train(rig.batch(1))
    state = rig.update.state()
    kept = {key: tensor.clone() for key, tensor in state.items()}
    rig.train(rig.batch(2))
    torch.testing.assert_close(state, kept, rtol=0, atol=0)
    assert any(not torch.equal(kept[key], now) for key, now in rig.update.state().items())


@every_algorithm
def test_batches_in_read_only_memory_are_taken_without_a_word(name, recwarn):
    rig = Rig(name, normalize={"observations": True})
    batch = rig.batch(1)
    for array in batch.arrays.values():
        array.flags.writeable = False
    rig.train(batch)
    assert not recwarn.list


@every_algorithm
def test_a_gradient_moves_nothing_and_a_step_follows_what_was_made_of_it(name):
    """What stands between the two calls may replace the gradient, as a reduction does."""
    rig = Rig(name)
    before = rig.parameters()
    minibatch = next(rig.update.minibatches(rig.batch(1), 0.0))
    gradient = minibatch.gradient()
    # It may hold more than what is published: SAC's critics stay in the learner.
    assert gradient.ndim == 1 and len(gradient) >= len(before) and gradient.any()
    assert torch.equal(rig.parameters(), before)
    gradient.zero_()
    minibatch.step()
    assert torch.equal(rig.parameters(), before)


@every_algorithm
def test_a_batch_that_is_cut_short_reports_the_updates_it_had(name):
    rig = Rig(name)
    assert rig.update.metrics() == {}
    minibatch = next(rig.update.minibatches(rig.batch(1), 0.0))
    minibatch.gradient()
    minibatch.step()
    metrics = rig.update.metrics()
    assert metrics["grad_norm"] > 0 and np.isfinite(list(metrics.values())).all()


@every_algorithm
def test_minibatch_steps_are_those_of_one_update(name):
    rig = Rig(name)
    batch = rig.batch(1)
    num_updates = rig.count_updates(batch)
    epochs = getattr(rig.config.algorithm, "epochs", 1)
    expected = batch.num_steps * epochs / num_updates
    assert rig.update.minibatch_steps(batch) == pytest.approx(expected, abs=1)


@every_algorithm
def test_the_cadence_counts_every_step_that_is_trained_on(name):
    rig = Rig(name)
    batch = rig.batch(1)
    if name in QUEUED:
        unroll = rig.unroll(1)
        unroll["valid"][:] = True  # what is reset is no step
        batch = queue_batch(unroll)
    num_updates = rig.count_updates(batch)
    trained = num_updates * rig.update.minibatch_steps(batch)
    assert trained == rig.algorithm.cadence(rig.config).trained_steps_per_version


@pytest.mark.parametrize("name", QUEUED)
@pytest.mark.parametrize("action", ["discrete", "multidiscrete", "box"])
@pytest.mark.parametrize("settings", [{}, {"observations": True, "rewards": True}])
def test_rows_that_are_not_valid_never_matter(name, action, settings):
    """Whatever they hold, NaN and impossible actions included, training gives the same bits."""
    clean, dirty = (Rig(name, action=action, normalize=settings) for _ in range(2))
    unroll = clean.unroll(2)
    invalid = ~unroll["valid"]
    assert invalid.any()
    poisoned = {key: array.copy() for key, array in unroll.items()}
    poisoned["reward"][invalid] = np.nan
    poisoned["log_prob"][invalid] = np.inf
    poisoned["terminated"][invalid] = poisoned["truncated"][invalid] = True
    poisoned["action"][invalid] = 10**6
    clean_metrics = clean.train(queue_batch(unroll))
    dirty_metrics = dirty.train(queue_batch(poisoned))
    assert dirty_metrics == clean_metrics
    assert torch.equal(dirty.parameters(), clean.parameters())


@pytest.mark.parametrize("name", QUEUED)
def test_an_unroll_handed_over_short_trains_on_what_it_has(name):
    """Rows that were never acted hold garbage, observations included."""
    clean, dirty = Rig(name), Rig(name)
    unroll = clean.unroll(2)
    unroll["valid"][5:] = False
    poisoned = {key: array.copy() for key, array in unroll.items()}
    poisoned["obs"][6:] = np.nan
    poisoned["action"][5:] = -(10**6)
    clean.train(queue_batch(unroll))
    dirty.train(queue_batch(poisoned))
    assert torch.equal(dirty.parameters(), clean.parameters())


@every_algorithm
def test_acting_leaves_rows_alone_that_it_did_not_act(name):
    rig = Rig(name)
    unroll = rig.unroll(2)
    for array in (unroll[field.name] for field in rig.algorithm.fields(rig.spaces, rig.config)):
        array[5:] = -77
    rig.acting.begin(np.random.default_rng(0), unroll, 0, 0)
    for t in range(5):
        rig.acting.act(unroll, t)
    rig.acting.finish(unroll, 0)
    for array in (unroll[field.name] for field in rig.algorithm.fields(rig.spaces, rig.config)):
        assert (array[5:] == -77).all() and (array[:5] != -77).all()


@pytest.mark.parametrize("name", QUEUED)
def test_a_batch_without_a_valid_step_changes_nothing(name):
    rig = Rig(name)
    unroll, before = rig.unroll(1), rig.parameters()
    unroll["valid"][:] = False
    assert rig.train(queue_batch(unroll)) == {}
    assert torch.equal(rig.parameters(), before)


@pytest.mark.parametrize("name", QUEUED)
def test_final_observations_apart_give_the_same_as_in_line(name):
    """Worlds that reset in the same step keep the final observation in `final_obs`."""
    rows = Rig(name).unroll(4)
    rows["valid"][:] = True
    rows["valid"][0] = False
    rows["terminated"][:] = rows["truncated"][:] = False
    rows["truncated"][0] = rows["truncated"][-1] = True
    apart = {key: array.copy() for key, array in rows.items()}
    apart["final_obs"] = np.full_like(rows["obs"][:-1], np.nan)
    apart["final_obs"][-1] = rows["obs"][-1]
    apart["obs"][-1] = 123.0
    in_line, kept = Rig(name), Rig(name, keeps_final=True)
    in_line.train(queue_batch(rows))
    kept.train(queue_batch(apart))
    torch.testing.assert_close(kept.parameters(), in_line.parameters())


@whose_batches_are_steps
@pytest.mark.parametrize(("field", "named"), [("reward", "reward"), ("obs", "observations")])
def test_what_is_not_finite_stops_training_and_is_named(name, field, named):
    rig = Rig(name)
    batch = rig.batch(1)
    arrays = {key: array.copy() for key, array in batch.arrays.items()}
    arrays[field][0, 0] = np.nan
    if "valid" in arrays:
        arrays["valid"][0, 0] = True
    before = rig.parameters()
    with pytest.raises(TrainingDiverged, match=f"at update 1.*{named}.*lower learning rate"):
        rig.train(Batch(arrays, batch.stamps, batch.num_items, batch.num_steps))
    assert torch.equal(rig.parameters(), before)


@every_case
def test_the_exported_policy_is_the_greedy_one(name, observation, action):
    rig = Rig(name, observation, action)
    rig.train(rig.batch(1))
    unroll = rig.unroll(3)
    obs = {key: array[0] for key, array in unroll.items() if key.startswith("obs")}
    exported = rig.algorithm.export(rig.model, rig.spaces, rig.config)
    leaves = observation_leaves(rig.spaces.observation)
    tensors = [torch.from_numpy(obs[f"obs.{x.key}" if x.key else "obs"]) for x in leaves]
    with torch.no_grad():
        if size := state_size(rig.acting):
            got, state = exported(*tensors, torch.zeros(len(tensors[0]), size))
            assert state.shape == (len(tensors[0]), size) and state.any()
        else:
            got = exported(*tensors)
    expected = make_action_cast(rig.spaces.action)(rig.greedy(obs))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@every_case
def test_an_actor_that_reads_the_published_policy_acts_like_the_learner(name, observation, action):
    rig = Rig(name, observation, action, normalize={"observations": True})
    other = Rig(name, observation, action, normalize={"observations": True}, seed=9)
    source, target = Snapshot(rig.model), Snapshot(other.model)
    rig.train(rig.batch(1))
    buffer = np.zeros(source.nbytes, np.uint8)
    source.write_to(buffer)
    target.read_from(buffer)
    mine, theirs = rig.unroll(3), other.unroll(3)
    np.testing.assert_array_equal(theirs["action"], mine["action"])


@pytest.mark.parametrize("name", ["sac", "dqn", "apex", "impala", "a3c", "gorila"])
def test_the_learning_rate_falls_to_its_final_value(name):
    rig = Rig(name, settings={"learning_rate": 1e-2, "learning_rate_final": 0.0})
    before = rig.parameters()
    assert rig.train(rig.batch(1), progress=1.0)["learning_rate"] == 0.0
    assert torch.equal(rig.parameters(), before)
