"""The learner on a GPU: the same numbers as on a CPU, and at most one wait for each version."""

import numpy as np
import pytest
import torch
from gymnasium.spaces import Discrete

from tianji.algorithms.registry import load_algorithm
from tianji.config.run import RunConfig
from tianji.devices.waits import WAITS
from tianji.envs.interface import Spaces
from tianji.envs.spaces import Frames
from tianji.errors import TrainingDiverged
from tianji.models.networks.precision import set_precision
from tianji.models.tensors import Snapshot, flatten
from tianji.types import Batch, Stamp

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

ROWS, ENVS, ACTIONS = 16, 8, 6
SPACES = Spaces(Frames(4, (84, 84)), Discrete(ACTIONS))
ALGORITHMS = {
    "ppo": {"epochs": 1, "minibatch_size": ROWS * ENVS, "unroll_length": ROWS},
    "impala": {"unroll_length": ROWS},
}


def make_batch(seed):
    rng = np.random.default_rng(seed)
    shape = (ROWS, ENVS)
    valid = rng.random(shape) > 0.05
    terminated = (rng.random(shape) < 0.05) & valid
    arrays = {
        "obs": rng.integers(256, size=(ROWS + 4, ENVS, 84, 84), dtype=np.uint8),
        "age": rng.integers(20, size=(ROWS + 1, ENVS), dtype=np.uint8),
        "action": rng.integers(ACTIONS, size=shape),
        "log_prob": np.full(shape, -np.log(ACTIONS), np.float32),
        "reward": rng.standard_normal(shape).astype(np.float32),
        "terminated": terminated,
        "truncated": (rng.random(shape) < 0.02) & valid & ~terminated,
        "valid": valid,
    }
    stamps = (Stamp(0, 0, 0, 0, int(valid.sum()), 0, 0),)
    return Batch(arrays, stamps, 1, int(valid.sum()))


def make(name, device, memory="none", **more):
    settings = {"name": name, **ALGORITHMS[name], **more}
    config = RunConfig(
        env="ALE/Pong-v5", num_envs=ENVS, algorithm=settings, model={"memory": memory}
    )
    torch.manual_seed(0)
    built = load_algorithm(name)
    model = built.build_model(SPACES, config).to(device)
    flatten(model)
    return model, built.build_update(model, SPACES, config)


def train(update, num_versions, **more):
    found = []
    for version in range(num_versions):
        batch = make_batch(version)
        batch.arrays.update(more)
        for minibatch in update.minibatches(batch, 0.0):
            minibatch.gradient()
            minibatch.step()
        found.append(update.metrics())
    return found


@pytest.fixture(autouse=True)
def exact():
    """Products in full float32."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


@pytest.mark.parametrize("name", ALGORITHMS)
def test_updates_are_those_of_the_cpu(name):
    one, other = make(name, "cpu"), make(name, "cuda")
    theirs, ours = train(one[1], 1), train(other[1], 1)
    for key, value in theirs[0].items():
        assert ours[0][key] == pytest.approx(value, rel=0.02, abs=2e-3), key


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize(("memory", "size"), [("gru", 64), ("lstm", 128)])
def test_updates_with_a_memory_are_those_of_the_cpu(name, memory, size):
    states = {"memory": np.full((ENVS, size), 0.1, np.float32)}
    one, other = make(name, "cpu", memory), make(name, "cuda", memory)
    theirs, ours = train(one[1], 2, **states), train(other[1], 2, **states)
    for key, value in theirs[-1].items():
        assert ours[-1][key] == pytest.approx(value, rel=0.02, abs=2e-3), key


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_version_waits_once(name):
    model, update = make(name, "cuda")
    set_precision(model, True)
    snapshot = Snapshot(model)
    buffer = np.empty(snapshot.nbytes, np.uint8)
    train(update, 1)  # records the graphs
    before = WAITS.count
    torch.cuda.set_sync_debug_mode("error")
    try:
        for minibatch in update.minibatches(make_batch(1), 0.0):
            minibatch.gradient()
            minibatch.step()
        snapshot.write_to(buffer)
        update.metrics()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert WAITS.count == before + 1


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_gradient_that_is_not_finite_is_found_and_changes_nothing(name):
    model, update = make(name, "cuda")
    train(update, 1)
    before = flatten(model).vector_P.clone()
    batch = make_batch(1)
    batch.arrays["reward"][:] = np.nan
    for minibatch in update.minibatches(batch, 0.0):
        minibatch.gradient()
        minibatch.step()
    assert torch.equal(flatten(model).vector_P, before)
    with pytest.raises(TrainingDiverged, match="first quantity to go wrong: rewards"):
        update.metrics()


def test_an_early_stop_costs_one_wait_for_each_epoch_but_the_last():
    model, update = make("ppo", "cuda", epochs=3, target_kl=1e9)
    snapshot = Snapshot(model)
    buffer = np.empty(snapshot.nbytes, np.uint8)
    train(update, 1)
    before = WAITS.count
    for minibatch in update.minibatches(make_batch(1), 0.0):
        minibatch.gradient()
        minibatch.step()
    snapshot.write_to(buffer)
    update.metrics()
    assert WAITS.count == before + 3
