"""A gradient that is not finite is found after its version on a GPU: the culprit is named then."""

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from tianji.algorithms.registry import load_algorithm
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.errors import TrainingDiverged
from tianji.models.optimizers import GpuOptimizer
from tianji.types import Batch, Stamp

ROWS, ENVS, ITEMS = 4, 4, 8
NUMBERS = Box(-1.0, 1.0, (3,), "float32")
ALGORITHMS = {
    "ppo": {"epochs": 2, "minibatch_size": 8, "unroll_length": ROWS, "normalize_advantage": False},
    "impala": {"unroll_length": ROWS, "minibatches": 2},
    "dqn": {},
    "sac": {},
}
REPLAYED = ("dqn", "sac")
NAMES = {"obs": "observations", "reward": "rewards"}


def unrolls():
    rng, shape = np.random.default_rng(0), (ROWS, ENVS)
    ended = np.zeros(shape, np.bool_)
    arrays = {
        "obs": rng.standard_normal((ROWS + 1, ENVS, 3)).astype(np.float32),
        "action": rng.integers(2, size=shape),
        "log_prob": np.full(shape, -0.7, np.float32),
        "reward": rng.standard_normal(shape).astype(np.float32),
        "terminated": ended,
        "truncated": ended,
        "valid": ~ended,
    }
    return Batch(arrays, (Stamp(0, 0, 0, 0, ROWS * ENVS, 0, 0),), 1, ROWS * ENVS)


def transitions(name):
    rng, shape = np.random.default_rng(0), (2, ITEMS)
    action = rng.uniform(-1, 1, (*shape, 3)) if name == "sac" else rng.integers(2, size=shape)
    arrays = {
        "obs": rng.standard_normal((*shape, 3)).astype(np.float32),
        "next_obs": rng.standard_normal((*shape, 3)).astype(np.float32),
        "action": action.astype(np.float32) if name == "sac" else action,
        "reward": rng.standard_normal(shape).astype(np.float32),
        "discount": np.full(shape, 0.9, np.float32),
    }
    return Batch(arrays, (), 2 * ITEMS, 2 * ITEMS)


@pytest.mark.parametrize("field", NAMES)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_first_quantity_to_go_wrong_is_named(name, field, monkeypatch):
    monkeypatch.setattr(f"tianji.algorithms.{name}.update.build_optimizer", GpuOptimizer)
    settings = {"name": name, **ALGORITHMS[name]}
    config = RunConfig(num_envs=ENVS, algorithm=settings, normalize={"observations": False})
    algorithm = load_algorithm(name)
    torch.manual_seed(0)
    spaces = Spaces(NUMBERS, NUMBERS if name == "sac" else Discrete(2))
    update = algorithm.build_update(algorithm.build_model(spaces, config), spaces, config)
    batch = transitions(name) if name in REPLAYED else unrolls()
    batch.arrays[field][0, 0] = np.nan  # in the first of several updates
    for minibatch in update.minibatches(batch, 0.0):
        minibatch.gradient()
        minibatch.step()
    with pytest.raises(TrainingDiverged, match=f"first quantity to go wrong: {NAMES[field]}"):
        update.metrics()
