"""A trained policy with a memory: its state object, evaluation and ONNX."""

from types import SimpleNamespace

import numpy as np
import onnxruntime
import pytest
import torch

from tests.fakes.scripted import ScriptedWorld
from tianji.algorithms.registry import load_algorithm
from tianji.checkpoint.save import rotate, write_checkpoint
from tianji.checkpoint.schema import Snapshot
from tianji.config.files import save_config
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.envs.remembering import TMaze
from tianji.errors import TianjiError, UsageError
from tianji.evaluator.play import greedy, play_episodes
from tianji.trained import export
from tianji.trained.evaluate import _act, evaluate_run
from tianji.trained.export import export_run
from tianji.trained.policy import load_policy

MAZE = "tianji.envs.remembering:TMaze"
OBSERVATIONS = np.random.default_rng(0).uniform(-1, 1, (6, 2)).astype(np.float32)


@pytest.fixture
def make_run(tmp_path):
    """A folder as training leaves it, with random weights that differ much from each other."""

    def make(memory="gru", algorithm="ppo"):
        config = RunConfig(
            env=MAZE, env_kwargs={"length": 5}, model={"memory": memory, "memory_size": 7},
            algorithm={"name": algorithm}, normalize={"rewards": False},
        )  # fmt: skip
        save_config(config, tmp_path / "config.yaml")
        env = TMaze()
        spaces = Spaces(env.observation_space, env.action_space)
        torch.manual_seed(0)
        model = load_algorithm(algorithm).build_model(spaces, config)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter)
        write_checkpoint(tmp_path, Snapshot(1, model.state_dict(), {"x": 1}, {"env_steps": 5}))
        rotate(tmp_path, 3)
        return tmp_path

    return make


@pytest.fixture(params=["gru", "lstm"])
def policy(request, make_run):
    return load_policy(make_run(request.param))


@pytest.mark.parametrize("num_envs", [0, -1, "a", 2.5])
def test_a_state_is_of_one_environment_at_least(policy, num_envs):
    with pytest.raises(UsageError, match=rf"policy.start\({num_envs!r}\): .* of at least 1"):
        policy.start(num_envs)


def test_acting_updates_the_state_and_the_state_changes_the_values(policy):
    state = policy.start()
    assert not state.array_NS.any()
    first = policy.value(OBSERVATIONS[0], state)
    for observation in OBSERVATIONS:
        assert policy.act(observation, state) in (0, 1, 2)
    assert state.array_NS.any()
    assert policy.value(OBSERVATIONS[0], state) != first
    state.forget(None)
    assert policy.value(OBSERVATIONS[0], state) == first


@pytest.mark.parametrize("marks", [[True], [True, False, True], [[True, False]]])
def test_marks_of_ended_episodes_are_one_for_each_environment(policy, marks):
    state = policy.start(2)
    with pytest.raises(UsageError, match=r"state.forget\(ended\): .* 2 environments"):
        state.forget(np.array(marks))


def test_marks_say_whose_episode_is_forgotten(policy):
    state, one = policy.start(2), policy.start()
    state.array_NS[:], one.array_NS[:] = 1.0, 1.0
    state.forget([True, False])
    assert state.array_NS.all(axis=1).tolist() == [False, True]
    one.forget(False)
    assert one.array_NS.all()


def test_a_batch_has_a_state_for_each_environment(policy):
    together, alone = policy.start(2), [policy.start() for _ in range(2)]
    for pair in OBSERVATIONS.reshape(3, 2, 2):
        actions = policy.act(pair, together)
        assert list(actions) == [policy.act(o, s) for o, s in zip(pair, alone, strict=True)]
    states = np.concatenate([state.array_NS for state in alone])
    np.testing.assert_allclose(together.array_NS, states, rtol=1e-5, atol=1e-6)
    together.forget([True, False])
    assert not together.array_NS[0].any() and together.array_NS[1].any()


def test_sampled_actions_move_the_state_as_greedy_ones_do(policy):
    greedy, sampled = policy.start(6), policy.start(6)
    for scale in (1.0, 0.5):  # the second step starts from the state after the first
        policy.act(scale * OBSERVATIONS, greedy)
        policy.act(scale * OBSERVATIONS, sampled, deterministic=False)
        np.testing.assert_allclose(greedy.array_NS, sampled.array_NS, rtol=1e-6, atol=1e-7)
        assert sampled.array_NS.any()


def test_a_missing_or_wrong_state_is_explained(policy, make_run):
    with pytest.raises(UsageError, match=r"has a memory.*policy\.start\(\)"):
        policy.act(OBSERVATIONS[0])
    with pytest.raises(UsageError, match="False was given"):
        policy.act(OBSERVATIONS[0], False)
    with pytest.raises(
        UsageError, match=r"1 environment, and there are observations of 6.*start\(6\)"
    ):
        policy.act(OBSERVATIONS, policy.start())
    plain = load_policy(make_run("none"))
    with pytest.raises(UsageError, match=r"what policy\.start\(\) returns, and False was given"):
        plain.act(OBSERVATIONS[0], False)


def test_a_policy_without_a_memory_takes_an_empty_state(make_run):
    plain = load_policy(make_run("none"))
    state = plain.start(6)
    assert state.array_NS.shape == (6, 0)
    np.testing.assert_array_equal(plain.act(OBSERVATIONS, state), plain.act(OBSERVATIONS))


class EchoMemory:
    """Acting whose memory counts the steps of an episode and whose actions are that count."""

    state_size = 1

    def greedy(self, obs, state_NS):
        state_NS += 1.0
        return state_NS[:, 0].astype(np.int64)


def actions_in(lengths, **world):
    """The actions that playing sends to each of two environments with episodes of these lengths."""
    seen = []

    class Noted(ScriptedWorld):
        def send(self, actions):
            seen.append(actions.tolist())
            super().send(actions)

    play_episodes(greedy(EchoMemory()), Noted(lengths=lengths, **world), 4, 0, 100)
    return zip(*seen, strict=True)


def test_playing_gives_each_environment_its_own_state_and_resets_it_with_each_episode():
    """Each episode is followed by a row that only resets."""
    first, second = actions_in((3, 5))
    assert first[:8] == (1, 2, 3, 1, 1, 2, 3, 1)
    assert second[:8] == (1, 2, 3, 4, 5, 1, 1, 2)


@pytest.mark.parametrize("end", ["terminated", "truncated"])
def test_playing_resets_the_state_where_no_row_for_the_reset_follows(end):
    first, second = actions_in((3, 5), end=end, keeps_final=True)
    assert first[:6] == (1, 2, 3, 1, 2, 3) and second[:6] == (1, 2, 3, 4, 5, 1)


def test_a_stochastic_evaluation_keeps_the_state_until_the_episode_ends():
    acting = EchoMemory()
    policy = SimpleNamespace(
        acting=acting, sample=lambda obs, rng, state: acting.greedy(obs, state.array_NS)
    )
    act = _act(policy, stochastic=True, seed=0)
    is_first = (True, False, False, True)
    assert [act({}, np.array([first]))[0] for first in is_first] == [1, 2, 3, 1]


@pytest.mark.parametrize("stochastic", [False, True])
def test_a_run_with_a_memory_is_evaluated(stochastic, make_run):
    report = evaluate_run(make_run(), 3, seed=7, stochastic=stochastic)
    assert report["episodes"] == 3
    assert report == evaluate_run(make_run(), 3, seed=7, stochastic=stochastic)


def test_the_exported_policy_takes_and_gives_its_state(policy):
    report = export_run(policy.checkpoint.parents[1])
    size = policy.start().array_NS.shape[1]
    assert report["inputs"] == {"obs": [None, 2], "state": [None, size]}
    assert report["outputs"] == ["action", "next_state"]
    session = onnxruntime.InferenceSession(report["output"])
    state, memory = policy.start(6), np.zeros((6, size), np.float32)
    for _ in range(4):
        inputs = {"obs": OBSERVATIONS, "state": memory}
        actions, memory = session.run(["action", "next_state"], inputs)
        np.testing.assert_array_equal(actions, policy.act(OBSERVATIONS, state))
        np.testing.assert_allclose(memory, state.array_NS, atol=1e-5)


def test_an_exported_policy_whose_state_differs_is_not_kept(make_run, monkeypatch):
    """Its actions are the same, only the state that it returns is another."""
    run = make_run()
    acted = export.greedy_actions

    def other_state(acting, obs, state):
        actions = acted(acting, obs, state)
        state.array_NS += 0.01
        return actions

    monkeypatch.setattr(export, "greedy_actions", other_state)
    with pytest.raises(TianjiError, match="differs from the policy"):
        export_run(run)
    assert not (run / export.ONNX_FILE).exists()
