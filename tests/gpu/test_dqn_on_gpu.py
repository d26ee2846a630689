"""DQN and Ape-X on a GPU: the same updates, actions and priorities as on a CPU."""

import numpy as np
import pytest
import torch
from gymnasium.spaces import Discrete

from tianji.algorithms.registry import load_algorithm
from tianji.config.run import RunConfig
from tianji.devices.waits import WAITS
from tianji.envs.interface import Spaces
from tianji.envs.spaces import Frames
from tianji.models.tensors import Snapshot, flatten
from tianji.types import PRIORITY, Batch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

ROWS, ENVS, ACTIONS, N_STEP = 10, 8, 6, 3
SPACES = Spaces(Frames(4, (84, 84)), Discrete(ACTIONS))
ALGORITHM = {"name": "apex", "batch_size": 32, "updates_per_version": 2, "n_step": N_STEP}


@pytest.fixture(autouse=True)
def exact():
    """Products in full float32."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


def make(device):
    config = RunConfig(env="ALE/Pong-v5", num_envs=ENVS, algorithm=ALGORITHM)
    torch.manual_seed(0)
    built = load_algorithm("apex")
    model = built.build_model(SPACES, config).to(device)
    flatten(model)
    return model, built, config


def make_batch(seed):
    rng, shape = np.random.default_rng(seed), (2, 32)
    images = (*shape, 4, 84, 84)
    return Batch(
        {
            "obs": rng.integers(256, size=images, dtype=np.uint8),
            "next_obs": rng.integers(256, size=images, dtype=np.uint8),
            "action": rng.integers(ACTIONS, size=shape),
            "reward": rng.standard_normal(shape).astype(np.float32),
            "discount": np.where(rng.random(shape) < 0.2, 0.0, 0.97).astype(np.float32),
            "weight": rng.random(shape).astype(np.float32),
        },
        (),
        64,
        64,
    )


def train(update, seed):
    for minibatch in update.minibatches(make_batch(seed), 0.0):
        minibatch.gradient()
        minibatch.step()


def test_updates_and_priorities_are_those_of_the_cpu():
    found = []
    for device in ("cpu", "cuda"):
        model, built, config = make(device)
        update = built.build_update(model, SPACES, config)
        train(update, 1)
        found.append((update.metrics(), update.priorities()))
    (theirs, expected), (ours, priorities) = found
    for key, value in theirs.items():
        assert ours[key] == pytest.approx(value, rel=0.02, abs=2e-3), key
    np.testing.assert_allclose(priorities, expected, rtol=0.02, atol=2e-3)


def test_a_version_waits_once():
    model, built, config = make("cuda")
    update = built.build_update(model, SPACES, config)
    snapshot = Snapshot(model)
    buffer = np.empty(snapshot.nbytes, np.uint8)
    train(update, 1)  # records the graphs
    before = WAITS.count
    train(update, 2)
    snapshot.write_to(buffer)
    update.metrics()
    assert update.priorities() is not None
    assert WAITS.count == before + 1


def test_actors_find_the_same_priorities():
    found = []
    for device in ("cpu", "cuda"):
        model, built, config = make(device)
        acting = built.build_acting(model, SPACES, config)
        rng = np.random.default_rng(3)
        unroll = {
            "obs": rng.integers(256, size=(ROWS + 4, ENVS, 84, 84), dtype=np.uint8),
            "age": np.full((ROWS + 1, ENVS), 9, np.uint8),
            "reward": rng.standard_normal((ROWS, ENVS)).astype(np.float32),
            "terminated": rng.random((ROWS, ENVS)) < 0.1,
            "truncated": np.zeros((ROWS, ENVS), bool),
            "valid": np.ones((ROWS, ENVS), bool),
        }
        for field in built.fields(SPACES, config):
            unroll[field.name] = np.zeros((ROWS, ENVS), field.dtype)
        acting.begin(np.random.default_rng(0), unroll, 0, 0)
        for t in range(ROWS):
            acting.act(unroll, t)
        acting.finish(unroll, 0)
        found.append(unroll)
    on_cpu, on_gpu = found
    alike = (on_cpu["action"] == on_gpu["action"]).all(0)  # near ties may be broken differently
    assert alike.sum() >= ENVS // 2
    items = slice(0, ROWS - N_STEP)
    np.testing.assert_allclose(
        on_gpu[PRIORITY][items, alike], on_cpu[PRIORITY][items, alike], rtol=0.02, atol=2e-3
    )
