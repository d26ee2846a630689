"""Ape-X: exploration by a ladder, the first priorities of the actors, and the free balance."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from tests.fakes.experience import Rig
from tests.fakes.specs import MACHINE, make_spec
from tests.unit.engines.test_inline_engine import Watcher
from tianji.algorithms.accelerators.gpu import GpuRows
from tianji.algorithms.accelerators.inference import build_rows
from tianji.algorithms.accelerators.q_values import q_network
from tianji.algorithms.dqn.exploration import ladder
from tianji.algorithms.registry import load_algorithm
from tianji.buffer.stores.rings import Items
from tianji.config.run import RunConfig
from tianji.engines.inline import InlineEngine
from tianji.envs.build import probe
from tianji.envs.interface import Spaces
from tianji.envs.spaces import Frames
from tianji.errors import UsageError
from tianji.planning.resolve.resolve import resolve
from tianji.programs.one_group import program_for
from tianji.types import PRIORITY


def test_the_ladder_is_that_of_the_paper():
    """0.4^linspace(1, 8, N), as SEED RL writes it."""
    np.testing.assert_allclose(ladder(0.4, 7.0, 360), 0.4 ** np.linspace(1, 8, 360), rtol=1e-5)
    assert ladder(0.4, 7.0, 1).tolist() == pytest.approx([0.4])
    assert ladder(0.4, 7.0, 2).tolist() == pytest.approx([0.4, 0.4**8])
    assert ladder(0.3, 0.0, 3).tolist() == pytest.approx([0.3] * 3)


def share_of_random_actions(rig, num_envs, num_rows=2000):
    unroll = rig.unroll(1, num_rows=num_rows, num_envs=num_envs)
    greedy = rig.acting.greedy({"obs": unroll["obs"][:-1].reshape(-1, 4)}).reshape(-1, num_envs)
    # A third of the random actions are the best ones by chance.
    return (unroll["action"] != greedy).mean(0) * 3 / 2


def test_every_environment_of_all_actors_has_its_own_rung():
    rig = Rig("apex", settings={"ladder_epsilon": 0.9, "ladder_alpha": 3.0})
    rungs = ladder(0.9, 3.0, 4)
    np.testing.assert_allclose(share_of_random_actions(rig, 4), rungs, atol=0.05)
    rig.acting.take_environments(first=2)
    np.testing.assert_allclose(share_of_random_actions(rig, 2), rungs[2:], atol=0.05)


def test_the_ladder_does_not_decay():
    rig = Rig("apex")
    before, after = (rig.acting._exploration.epsilon(steps, 4) for steps in (0, 10**9))
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("observation", ["vector", "image", "tree"])
@pytest.mark.parametrize("dueling", [True, False])
def test_priorities_are_the_errors_by_the_networks_own_values(observation, dueling):
    rig = Rig("apex", observation, settings={"dueling": dueling, "n_step": 2})
    unroll = rig.unroll(3, num_rows=10)
    obs = {
        name.partition(".")[2]: torch.from_numpy(array.reshape(-1, *array.shape[2:]))
        for name, array in unroll.items()
        if name.startswith("obs")
    }
    with torch.no_grad():
        q = rig.model(obs).numpy().reshape(11, 4, -1)
    gamma = rig.config.algorithm.gamma
    for t, env in np.ndindex(8, 4):
        if not unroll["valid"][t, env]:
            continue
        target, discount, at = 0.0, 1.0, t
        while at < t + 2 and unroll["valid"][at, env]:
            target += discount * unroll["reward"][at, env]
            discount *= gamma * (not unroll["terminated"][at, env])
            at += 1
            if unroll["terminated"][at - 1, env] or unroll["truncated"][at - 1, env]:
                break
        target += discount * q[at, env].max()
        expected = abs(target - q[t, env, unroll["action"][t, env]])
        assert unroll[PRIORITY][t, env] == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_the_store_begins_with_the_priorities_that_the_learner_would_find(tmp_path):
    """Nothing is learned, so the actors' values stay those of the learner's networks."""
    algorithm = {
        "name": "apex", "warmup_steps": 64, "batch_size": 8, "updates_per_version": 1,
        "unroll_length": 8, "learning_rate": 1e-12, "n_step": 3,
    }  # fmt: skip
    spec = make_spec(
        tmp_path, env="CartPole-v1", algorithm=algorithm, num_envs=4, num_actors=2, max_lag=1,
        max_env_steps=400,
    )  # fmt: skip
    watcher = Watcher()
    engine = InlineEngine(spec, program_for(spec.config, spec.plan), watcher)
    engine.run(watcher.stop, resume=False)
    group = engine.roles.side.group
    store, model = group.buffer._store, group._model
    rings, tree = store._rings, store._sampler._tree
    place = np.flatnonzero(tree.get(np.arange(tree.capacity)))
    assert len(place) > 300
    items = store._sampler._items(place)
    batch = rings.gather(items, spec.config.algorithm.gamma, 3)
    with torch.no_grad():
        q = model({"": torch.from_numpy(batch["obs"])}).numpy()
        following = model({"": torch.from_numpy(batch["next_obs"])}).numpy().max(1)
    taken = q[np.arange(len(q)), batch["action"]]
    error = np.abs(batch["reward"] + batch["discount"] * following - taken)
    expected = (error + 1e-6) ** spec.config.algorithm.priority_exponent
    np.testing.assert_allclose(tree.get(place), expected, rtol=1e-3, atol=1e-4)
    assert isinstance(items, Items)


def test_dqn_gives_its_actors_nothing_more_to_do():
    config = RunConfig(algorithm={"name": "dqn", "sampling": "prioritized", "n_step": 3})
    algorithm = load_algorithm("dqn")
    assert algorithm.cadence(config).lookahead == 3
    assert [f.name for f in algorithm.fields(Rig("dqn").spaces, config)] == ["action"]
    assert config.balance == "paced"


def test_ape_x_is_dqn_with_other_defaults():
    config = RunConfig(algorithm="apex")
    assert config.balance == "free"
    algorithm = config.algorithm
    assert (algorithm.sampling, algorithm.n_step, algorithm.dueling) == ("prioritized", 3, True)
    assert algorithm.double and algorithm.exploration == "ladder"
    assert load_algorithm("apex").cadence(config).lookahead == 4


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"algorithm": "ppo"}, "ppo has no replay store"),
        ({"algorithm": "dqn", "max_lag": 0}, "max_lag is 0"),
        ({"algorithm": "dqn", "lag_target": 1}, "lag_target is 1"),
    ],
)
def test_a_free_balance_needs_a_store_and_lag_that_is_left_to_it(asked, message):
    config = RunConfig(**asked, balance="free")
    with pytest.raises(UsageError, match=message):
        resolve(config, MACHINE, probe("CartPole-v1", {}))


@pytest.mark.parametrize("dueling", [True, False])
def test_rows_on_a_device_have_the_same_values(dueling):
    """The form for GPUs runs on any device."""
    spaces = Spaces(Frames(4, (36, 36)), gym.spaces.Discrete(3))
    config = RunConfig(algorithm={"name": "apex", "dueling": dueling})
    model = load_algorithm("apex").build_model(spaces, config)
    rng = np.random.default_rng(1)
    unroll = {
        "obs": rng.integers(256, size=(5 + 4, 2, 36, 36), dtype=np.uint8),
        "age": np.array([[0, 9], [1, 10], [2, 0], [3, 1], [4, 2], [5, 3]], np.uint8),
    }
    network = q_network(model)
    here = build_rows(network, spaces.observation)
    there = GpuRows(network.forward, spaces.observation, torch.device("cpu"))
    found = np.empty((2, 5, 2, 3), np.float32)
    for rows, out_RNA in zip((here, there), found, strict=True):
        rows.begin(unroll)
        for t in range(5):
            rows.submit(unroll, t)
            rows.collect(out_RNA[t])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4, atol=1e-5)
