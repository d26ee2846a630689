"""PPO and IMPALA with a memory: stored states, steps that count, and minibatches of sequences."""

from functools import partial

import numpy as np
import pytest
import torch

from tests.fakes.experience import Rig, queue_batch
from tests.fakes.graphs import use_fake_graphs
from tests.fakes.ranks import counted_ranks, on_threads
from tianji.algorithms.actor_critic.model import ModelEvaluator
from tianji.algorithms.actor_critic.preprocessor import Preprocessor
from tianji.algorithms.actor_critic.sequences import counted_steps, sequences_of
from tianji.algorithms.memory import forget_ended
from tianji.errors import UsageError
from tianji.models.networks.recurrent import RESETS, STATE
from tianji.types import MEMORY, NEXT_MEMORY

NAMES = ("ppo+gru", "ppo+lstm", "impala+gru")
every_policy = pytest.mark.parametrize("name", NAMES)


def process(rig, unroll):
    return Preprocessor(rig.model, rig.spaces, rig.config).process(queue_batch(unroll))


def evaluate(rig, unroll):
    """Log-probabilities [T, N] and values [T + 1, N] as the learner computes them."""
    experience = process(rig, unroll)
    evaluator = ModelEvaluator(rig.model)
    inputs = evaluator.inputs(experience.obs_rows(experience.row_order()))
    found = evaluator.evaluate(inputs, evaluator.actions(experience.action_rows()))
    shape = unroll["valid"].shape
    return found.log_prob_B.view(shape).numpy(), found.value_R.view(shape[0] + 1, -1).numpy()


@every_policy
def test_the_learner_repeats_what_the_actor_computed(name):
    """From the stored states, over the ends of episodes; it is not so from other states."""
    rig = Rig(name)
    before = rig.unroll(1)
    unroll = {key: array.copy() for key, array in rig.unroll(2).items()}
    unroll[MEMORY][:] = before[NEXT_MEMORY]
    rig.acting.begin(np.random.default_rng(0), unroll, 0, 0)
    for t in range(8):
        rig.acting.act(unroll, t)
    rig.acting.finish(unroll, 0)
    valid = unroll["valid"]
    assert not valid.all() and unroll["truncated"].any()
    log_prob_TN, _ = evaluate(rig, unroll)
    np.testing.assert_allclose(log_prob_TN[valid], unroll["log_prob"][valid], rtol=1e-4, atol=1e-6)
    unroll[MEMORY][:] = -unroll[MEMORY]
    other_TN, _ = evaluate(rig, unroll)
    assert np.abs(other_TN - log_prob_TN)[0].max() > 1e-5


@every_policy
def test_the_value_after_a_cut_episode_is_that_of_its_own_state(name):
    """The row after the end shows it, with the memory of the episode; the next row begins one."""
    rig = Rig(name)
    unroll = rig.unroll(1)
    unroll["valid"][:] = True
    unroll["terminated"][:] = unroll["truncated"][:] = False
    _, goes_on = evaluate(rig, unroll)
    unroll["truncated"][3], unroll["valid"][4] = True, False
    _, cut = evaluate(rig, unroll)
    np.testing.assert_allclose(cut[:5], goes_on[:5], rtol=1e-6)
    assert (np.abs(cut[5] - goes_on[5]) > 1e-6).all()


def test_where_final_observations_are_apart_the_row_after_an_end_begins_an_episode():
    unroll = Rig("ppo+gru").unroll(1)
    unroll["valid"][:] = True
    unroll["terminated"][:] = unroll["truncated"][:] = False
    unroll["truncated"][3] = True
    unroll[MEMORY][:] = 1.0
    assert not sequences_of(unroll).resets_T1N.any()
    unroll["final_obs"] = unroll["obs"][:-1]
    assert sequences_of(unroll).resets_T1N.any(1).nonzero()[0].tolist() == [4]


def test_steps_of_the_burn_in_count_only_after_a_reset():
    unroll = Rig("ppo+gru").unroll(1)
    unroll["valid"][:] = True
    unroll["valid"][1, 0] = False
    unroll[MEMORY][:] = 1.0
    unroll[MEMORY][3] = 0.0  # an episode begins with the unroll
    counted = counted_steps(unroll, 4)
    assert counted[:, 0].tolist() == [False, False, True, True, True, True, True, True]
    assert counted[:, 1].tolist() == [False] * 4 + [True] * 4
    assert counted[:, 3].all()
    assert np.array_equal(counted_steps(unroll, 0), unroll["valid"])


@pytest.mark.parametrize("name", ["ppo+gru", "impala+gru"])
def test_what_a_step_of_the_burn_in_earned_does_not_matter(name):
    """Nor which action it was; its observation does."""
    rigs = [Rig(name, settings={"burn_in": 2, "gae_lambda": 0.0} if "ppo" in name else
                {"burn_in": 2, "trace_lambda": 0.0}) for _ in range(3)]  # fmt: skip
    unroll = rigs[0].unroll(1)
    unroll["valid"][:] = True
    unroll["terminated"][:] = unroll["truncated"][:] = False
    unroll[MEMORY][:] = 0.5
    others = [{key: array.copy() for key, array in unroll.items()} for _ in range(2)]
    others[0]["reward"][:2] += 9.0
    others[0]["action"][:2] = 1 - np.minimum(unroll["action"][:2], 1)
    others[1]["obs"][:2] += 1.0
    for rig, arrays in zip(rigs, (unroll, *others), strict=True):
        rig.train(queue_batch(arrays))
    expected, same, different = (rig.parameters() for rig in rigs)
    assert torch.equal(same, expected) and not torch.equal(different, expected)


@pytest.mark.parametrize(("minibatch_size", "num_updates"), [(8, 4), (1, 4), (16, 2), (100, 1)])
def test_minibatches_of_ppo_are_whole_sequences(minibatch_size, num_updates, monkeypatch):
    """Four environments and unrolls of 8 steps; a minibatch has one sequence at least."""
    rig = Rig("ppo+gru", settings={"minibatch_size": minibatch_size, "epochs": 1})
    unroll, seen = rig.unroll(1), []
    unroll["valid"][:] = True
    forward = type(rig.model).forward

    def noted(self, inputs):
        seen.append({key: x.clone() for key, x in inputs.items()})
        return forward(self, inputs)

    monkeypatch.setattr(type(rig.model), "forward", noted)
    assert rig.count_updates(queue_batch(unroll)) == num_updates
    _, *minibatches = seen
    columns = []
    for inputs in minibatches:
        num_envs = len(inputs[STATE])
        obs_TN4 = inputs[""].view(8, num_envs, 4)
        assert inputs[RESETS].shape == (8 * num_envs,)
        for n in range(num_envs):
            (column,) = (
                c for c in range(4) if np.array_equal(unroll["obs"][:-1, c], obs_TN4[:, n])
            )
            columns.append(column)
    assert sorted(columns) == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["ppo+gru", "impala+gru"])
@pytest.mark.parametrize(
    ("settings", "model", "message"),
    [
        ({"burn_in": 8}, {"memory": "gru"}, "burn_in is 8, and unrolls have 8 steps"),
        ({"burn_in": 2}, {"memory": "none"}, "no memory whose state"),
        ({}, {"memory": "gru", "factory": "a:b"}, "model.factory is 'a:b'"),
        ({"noise_color": 1.0}, {}, "noise_color is 1, and the actions of this environment are"),
    ],
)
def test_settings_that_cannot_work_are_refused(name, settings, model, message):
    with pytest.raises(UsageError, match=message):
        Rig(name.partition("+")[0], settings=settings, model=model)


def test_the_width_of_the_memory_follows_the_hidden_layers():
    def size(**model):
        return Rig("ppo", model={"memory": "lstm", **model}).model.net.memory.size

    assert (size(), size(hidden=(32, 16)), size(hidden=()), size(memory_size=7)) == (64, 16, 64, 7)


def halves_of(unroll):
    """Return the batches of two ranks: two environments each."""
    per_env = (MEMORY, NEXT_MEMORY)
    for part in (slice(0, 2), slice(2, 4)):
        arrays = {key: x[part] if key in per_env else x[:, part] for key, x in unroll.items()}
        yield queue_batch(arrays)


@pytest.mark.parametrize("name", ["ppo+gru", "ppo+lstm", "impala+gru"])
def test_two_learners_that_add_up_their_gradients_are_one(name):
    """With one minibatch, so that the order of sequences does not matter."""
    settings = {"learning_rate": 1e-3}
    if name.startswith("ppo"):
        settings |= {"minibatch_size": 100, "epochs": 2}
    whole, *ranks = (Rig(name, settings=settings) for _ in range(3))
    unroll = whole.unroll(3)
    unroll[MEMORY][:] = 0.3
    whole.train(queue_batch(unroll))

    def train(rig, peers, batch):
        rig.update.join(peers)
        for minibatch in rig.update.minibatches(batch, 0.0):
            peers.add(minibatch.gradient())
            minibatch.step()

    ends = counted_ranks(2)
    parts = zip(ranks, ends, halves_of(unroll), strict=True)
    on_threads([partial(train, *part) for part in parts], ends)
    assert torch.equal(ranks[0].parameters(), ranks[1].parameters())
    torch.testing.assert_close(ranks[0].parameters(), whole.parameters(), rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("name", ["ppo+gru", "ppo+lstm"])
def test_sequences_keep_their_own_rows_when_they_are_shuffled(name):
    """Before the first step the ratios of all rows are 1: each has its own old log-probability."""
    rig = Rig(name, settings={"minibatch_size": 16})
    unroll = rig.unroll(4)
    unroll[MEMORY][:] = np.random.default_rng(0).uniform(-1, 1, unroll[MEMORY].shape)
    minibatch = next(rig.update.minibatches(queue_batch(unroll), 0.0))
    minibatch.gradient()
    minibatch.step()
    assert rig.update.metrics()["approx_kl"] == pytest.approx(0.0, abs=1e-9)


@every_policy
@pytest.mark.parametrize("keeps_final", [False, True])
def test_updates_as_graphs_are_those_without(name, keeps_final, monkeypatch):
    """As on a GPU: every launch reads and overwrites the same memory."""
    plain = Rig(name, keeps_final=keeps_final)
    unrolls = [plain.unroll(seed) for seed in range(3)]
    expected = [plain.train(queue_batch(unroll)) for unroll in unrolls]
    use_fake_graphs(monkeypatch)
    rig = Rig(name, keeps_final=keeps_final)
    for unroll, metrics in zip(unrolls, expected, strict=True):
        assert rig.train(queue_batch(unroll)) == pytest.approx(metrics, rel=1e-5, abs=1e-6)
    assert torch.equal(rig.parameters(), plain.parameters())


def test_images_go_through_convolutions_and_then_to_the_memory():
    rig = Rig("ppo+gru", observation="tree")
    net, before = rig.model.net, rig.parameters()
    assert net.memory.weight_input.shape[1] == net.encoder.num_features > 512
    assert np.isfinite(list(rig.train(rig.batch(1)).values())).all()
    assert not torch.equal(rig.parameters(), before)


@every_policy
def test_actions_stay_legal_with_a_memory(name):
    """In unrolls, greedily and in the exported policy; and training on masked rows is finite."""
    rig = Rig(name, has_masks=True)
    unroll = rig.unroll(1)
    masks = unroll["obs.action_mask"]
    assert np.take_along_axis(masks[:-1], unroll["action"][..., None], 2).all()
    obs = {key: array[0] for key, array in unroll.items() if key.startswith("obs")}
    assert np.take_along_axis(masks[0], rig.greedy(obs)[:, None], 1).all()
    state = torch.zeros(4, rig.acting.state_size)
    exported = rig.algorithm.export(rig.model, rig.spaces, rig.config)
    leaves = [torch.from_numpy(obs[key]) for key in ("obs", "obs.action_mask")]
    action, _ = exported(*leaves, state)
    start = rig.spaces.action.start
    assert np.take_along_axis(masks[0], action.numpy()[:, None] - start, 1).all()
    assert np.isfinite(list(rig.train(queue_batch(unroll)).values())).all()
    assert torch.isfinite(rig.parameters()).all()


@pytest.mark.parametrize("end", ["terminated", "truncated"])
def test_an_episode_that_ends_without_a_row_for_the_reset_resets_its_state(end):
    unroll = {name: np.zeros((3, 2), np.bool_) for name in ("terminated", "truncated", "valid")}
    unroll["valid"][:] = True
    unroll[end][1, 0] = True
    state_NS = np.ones((2, 4), np.float32)
    forget_ended(unroll, 1, state_NS)
    assert not state_NS[0].any() and state_NS[1].all()


def test_the_value_of_a_separate_final_observation_is_that_of_its_own_state():
    """It equals the value of the same observation in line, in an episode that goes on."""
    in_line, apart = Rig("ppo+gru"), Rig("ppo+gru", keeps_final=True)
    unroll = in_line.unroll(1)
    unroll["valid"][:] = True
    unroll["terminated"][:] = unroll["truncated"][:] = False
    unroll[MEMORY][:] = 0.5
    rows = {key: array.copy() for key, array in unroll.items()}
    rows["final_obs"] = rows["obs"][1:].copy()
    rows["truncated"][3] = True
    _, expected = evaluate(in_line, unroll)
    found = process(apart, rows).final_value(ModelEvaluator(apart.model))
    np.testing.assert_allclose(found.numpy(), expected[4], rtol=1e-5, atol=1e-6)
