"""Actions drawn as in training, and values, of policies whose networks are known."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from tianji.algorithms.registry import load_algorithm
from tianji.checkpoint.save import write_checkpoint
from tianji.checkpoint.schema import Snapshot
from tianji.config.files import save_config
from tianji.config.overrides import make_config
from tianji.envs.interface import Spaces
from tianji.errors import UsageError
from tianji.trained.evaluate import evaluate_run
from tianji.trained.policy import load_policy

OBSERVATIONS = np.random.default_rng(0).normal(size=(2000, 4)).astype(np.float32)


@pytest.fixture
def make_policy(tmp_path):
    """The policy of a run whose checkpoint has random weights."""

    def make(preset, env="CartPole-v1", state=None, env_steps=0, **settings):
        config = make_config(preset, env=env, **settings)
        world = gym.make(env)
        spaces = Spaces(world.observation_space, world.action_space)
        torch.manual_seed(3)
        model = load_algorithm(config.algorithm.name).build_model(spaces, config)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
        save_config(config, tmp_path / "config.yaml")
        facts = {"env_steps": env_steps}
        weights = model.state_dict()
        write_checkpoint(tmp_path, Snapshot(1, weights, {"update": state or {}}, facts))
        return load_policy(tmp_path)

    return make


@pytest.mark.parametrize("preset", ["cartpole-ppo", "cartpole-impala", "rennala-nigt"])
def test_sampled_actions_follow_the_distribution_and_greedy_ones_its_mode(make_policy, preset):
    policy = make_policy(preset)
    same = np.repeat(OBSERVATIONS[:1], 2000, axis=0)
    outputs = policy.model({"": torch.from_numpy(same[:1])})
    logits = outputs[0] if isinstance(outputs, tuple) else outputs
    chances = torch.softmax(logits.reshape(-1), 0).detach().numpy()
    drawn = policy.act(same, deterministic=False)
    assert drawn.mean() == pytest.approx(chances[1], abs=0.05) and 0 < drawn.mean() < 1
    assert set(policy.act(same)) == {int(chances.argmax())}
    one = policy.act(same[0], deterministic=False)
    assert gym.make("CartPole-v1").action_space.contains(one)


def test_continuous_actions_are_sampled_within_their_bounds(make_policy):
    policy = make_policy("cartpole-ppo", "Pendulum-v1")
    same = np.repeat(OBSERVATIONS[:1, :3], 500, axis=0)
    drawn = policy.act(same, deterministic=False)
    assert drawn.shape == (500, 1) and drawn.dtype == np.float32
    assert drawn.std() > 0.3 and np.abs(drawn).max() <= 2.0
    assert policy.act(same).std() == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize(("env_steps", "chance"), [(0, 1.0), (10**9, 0.1)])
def test_dqn_explores_as_much_as_it_did_at_its_checkpoint(make_policy, env_steps, chance):
    schedule = {"epsilon_start": 1.0, "epsilon_final": 0.1, "epsilon_decay_steps": 1000}
    policy = make_policy("cartpole-dqn", env_steps=env_steps, **schedule)
    greedy = policy.act(OBSERVATIONS)
    differ = (policy.act(OBSERVATIONS, deterministic=False) != greedy).mean()
    assert differ == pytest.approx(chance / 2, abs=0.05)


def test_draws_repeat_with_the_seed_of_the_run_or_of_the_evaluation(make_policy):
    policy = make_policy("cartpole-ppo", seed=5)
    again = load_policy(policy.checkpoint.parents[1])
    drawn = [one.act(OBSERVATIONS, deterministic=False) for one in (policy, again)]
    np.testing.assert_array_equal(*drawn)
    assert (policy.act(OBSERVATIONS, deterministic=False) != drawn[0]).any()
    run = policy.checkpoint.parents[1]
    sampled = evaluate_run(run, 4, seed=3, stochastic=True)
    assert sampled == evaluate_run(run, 4, seed=3, stochastic=True) and sampled["stochastic"]
    assert sampled["returns"] != evaluate_run(run, 4, seed=3)["returns"]


def test_the_value_of_an_actor_critic_is_its_value_network(make_policy):
    policy = make_policy("cartpole-ppo")
    with torch.no_grad():
        _, values = policy.model({"": torch.from_numpy(OBSERVATIONS)})
    np.testing.assert_allclose(policy.value(OBSERVATIONS), values[:, 0], rtol=1e-4, atol=1e-5)
    one = policy.value(OBSERVATIONS[0])
    assert isinstance(one, float) and one == pytest.approx(float(values[0, 0]), rel=1e-4)


def test_values_are_in_the_environments_rewards_where_those_were_normalised(make_policy):
    moments = {"count": 10.0, "mean": [2.0], "m2": [90.0]}
    state = {
        f"rewards/{name}": torch.tensor(value, dtype=torch.float64)
        for name, value in moments.items()
    }
    scaled = make_policy("cartpole-ppo", state=state, normalize={"rewards": True})
    with torch.no_grad():
        _, learned = scaled.model({"": torch.from_numpy(OBSERVATIONS)})
    np.testing.assert_allclose(
        scaled.value(OBSERVATIONS), 3.0 * learned[:, 0], rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("dueling", [False, True])
def test_the_value_of_dqn_is_the_largest_q_value(make_policy, dueling):
    policy = make_policy("cartpole-dqn", dueling=dueling)
    with torch.no_grad():
        scores = policy.model({"": torch.from_numpy(OBSERVATIONS)})
    np.testing.assert_allclose(policy.value(OBSERVATIONS), scores.max(1)[0], rtol=1e-5)


def test_an_algorithm_without_values_says_so(make_policy):
    with pytest.raises(
        UsageError, match=r"policy of rennala-nigt has no values.*ppo, impala or dqn"
    ):
        make_policy("rennala-nigt").value(OBSERVATIONS)
