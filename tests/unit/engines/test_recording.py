"""What is recorded while a role starts leaves no trace in the training."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.fakes.specs import make_spec
from tests.system.runs import CONTINUOUS, DQN, IMPALA, PPO, SAC
from tests.unit.engines.test_inline_engine import Watcher
from tianji.algorithms.accelerators.gpu import GpuRows
from tianji.algorithms.registry import load_algorithm
from tianji.buffer.role import Buffer
from tianji.engines.assembly import recording
from tianji.engines.assembly.model import build_model, is_repeatable
from tianji.engines.assembly.recording import (
    StartTimes,
    record_rows,
    record_update,
    zero_batch,
    zero_unroll,
)
from tianji.engines.inline import InlineEngine
from tianji.engines.signals import StopRequest
from tianji.models.optimizers import GpuOptimizer
from tianji.programs.one_group import program_for
from tianji.types import joined

PIXELS, NUMBERS = "tianji.envs.worlds:Pixels", "CartPole-v1"
ALGORITHMS = {
    "ppo": {**PPO, "target_kl": 0.5},
    "impala": {**IMPALA, "minibatches": 2},
    "dqn": DQN,
    "prioritised dqn": {**DQN, "sampling": "prioritized"},
    "sac": SAC,
}
REPLAYED = ("dqn", "prioritised dqn", "sac")
CASES = [(name, env) for name in ALGORITHMS if name != "sac" for env in (PIXELS, NUMBERS)]
CASES += [("sac", CONTINUOUS)]
NORMALIZED = {"observations": True, "rewards": True}


def spec_of(folder, name, env, **values):
    normalize = {} if name in REPLAYED or env == PIXELS else {"normalize": NORMALIZED}
    asked = {"num_envs": 4, "num_actors": 2, **normalize, **values}
    return make_spec(folder, env=env, algorithm=ALGORITHMS[name], **asked)


def built(spec):
    model = build_model(spec)
    algorithm = load_algorithm(spec.config.algorithm.name)
    return model, algorithm.build_update(model, spec.spaces, spec.config)


def random_batch(batch):
    """Return a batch of the same shapes, with numbers in it."""
    rng, arrays = np.random.default_rng(0), {}
    for name, array in batch.arrays.items():
        if array.dtype == np.float32:
            arrays[name] = rng.standard_normal(array.shape).astype(np.float32)
        else:
            arrays[name] = rng.integers(2, size=array.shape).astype(array.dtype)
    if "valid" in arrays:
        arrays["valid"][:] = True
    return replace(batch, arrays=arrays)


@pytest.mark.parametrize(("name", "env"), CASES)
def test_a_recorded_update_leaves_everything_as_it_was(name, env, tmp_path, monkeypatch):
    algorithm = ALGORITHMS[name]["name"]
    monkeypatch.setattr(f"tianji.algorithms.{algorithm}.update.build_optimizer", GpuOptimizer)
    spec = spec_of(tmp_path, name, env)
    (model, update), (other_model, other) = built(spec), built(spec)
    signs, drawn = [], torch.get_rng_state()
    record_update(spec, model, update, lambda: signs.append(1))
    assert signs, "something was recorded"
    assert torch.equal(torch.get_rng_state(), drawn)
    torch.testing.assert_close(update.state(), other.state(), rtol=0, atol=0)
    batch = random_batch(zero_batch(spec))
    for each in (update, other):
        for minibatch in each.minibatches(batch, 0.1):
            minibatch.gradient()
            minibatch.step()
    assert update.metrics() == other.metrics()
    torch.testing.assert_close(model.state_dict(), other_model.state_dict(), rtol=0, atol=0)
    torch.testing.assert_close(update.state(), other.state(), rtol=0, atol=0)


def shapes(batch, is_replay):
    """Return what a graph depends on; batches of a replay store have any number of updates."""
    arrays = {name: joined(array) for name, array in batch.arrays.items()}
    return {name: (x.shape[is_replay:], x.dtype) for name, x in arrays.items()}


@pytest.mark.parametrize(("name", "env"), CASES)
def test_a_batch_of_zeros_has_the_shapes_of_a_real_one(name, env, tmp_path, monkeypatch):
    spec, seen, is_replay = spec_of(tmp_path, name, env, max_env_steps=200), [], name in REPLAYED
    take = Buffer.take

    def look(self):
        if (batch := take(self)) is not None:
            seen.append(shapes(batch, is_replay))
        return batch

    monkeypatch.setattr(Buffer, "take", look)
    engine = InlineEngine(spec, program_for(spec.config, spec.plan), Watcher())
    engine.run(StopRequest(), resume=False)
    assert seen[0] == shapes(zero_batch(spec), is_replay)


def test_a_recorded_row_is_forgotten(tmp_path):
    spec = spec_of(tmp_path, "ppo", PIXELS)
    model = build_model(spec)
    acting = load_algorithm("ppo").build_acting(model, spec.spaces, spec.config)
    rows = GpuRows(acting.network.forward, spec.spaces.observation, torch.device("cpu"))
    fresh = GpuRows(acting.network.forward, spec.spaces.observation, torch.device("cpu"))
    acting.rows = rows
    record_rows(spec, acting)
    assert rows.uploaded_bytes == 0
    unroll = zero_unroll(spec)
    unroll["obs"][:] = np.random.default_rng(0).integers(256, size=unroll["obs"].shape)
    found = np.empty((2, unroll["obs"].shape[1], acting.network.num_outputs), np.float32)
    for out, each in zip(found, (rows, fresh), strict=True):
        each.begin(unroll)
        each.submit(unroll, 0)
        each.collect(out)
    assert np.array_equal(found[0], found[1])
    assert rows.uploaded_bytes == fresh.uploaded_bytes > 0


@pytest.mark.parametrize(
    ("precision", "asked", "expected"),
    [
        ("float32", {"max_lag": 0}, True),
        ("float32", {"max_lag": 1}, False),
        ("float32", {"engine": "inline", "max_lag": 1}, True),
        ("bfloat16", {"max_lag": 0}, False),
        ("auto", {"max_lag": 0}, False),
    ],
)
def test_runs_in_float32_without_lag_are_repeatable(precision, asked, expected, tmp_path):
    settings = {"engine": "local", "model": {"precision": precision}, **asked}
    assert is_repeatable(spec_of(tmp_path, "ppo", NUMBERS, **settings)) == expected


def test_times_of_the_start_are_told(monkeypatch):
    clock = iter([0.0, 0.5, 1.0, 3.0, 3.0, 3.25])
    monkeypatch.setattr(recording.time, "monotonic", lambda: next(clock))
    times = StartTimes()
    assert times.in_words() == ""
    for what in (recording.REGISTER, recording.RECORD, recording.RECORD):
        with times.measure(what):
            pass
    text = times.in_words()
    assert "registering slots 0.50 s, recording CUDA graphs 2.25 s" in text
