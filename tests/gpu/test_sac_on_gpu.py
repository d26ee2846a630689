"""SAC on a GPU: the same updates as on a CPU, repeatable, and resumed on either."""

from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box

from tests.system.runs import CONTINUOUS, SAC, differences, resume, run, saved_state
from tianji.algorithms.registry import load_algorithm
from tianji.config.run import RunConfig
from tianji.devices.waits import WAITS
from tianji.envs.interface import Spaces
from tianji.models.tensors import Snapshot, flatten
from tianji.types import Batch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

SPACES = Spaces(Box(-1.0, 1.0, (11,), np.float32), Box(-2.0, 2.0, (3,), np.float32))
SHAPE = (3, 64)


@pytest.fixture(autouse=True)
def exact():
    """Products in full float32."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


def make(device):
    config = RunConfig(algorithm={"name": "sac", "batch_size": SHAPE[1]})
    torch.manual_seed(0)
    built = load_algorithm("sac")
    model = built.build_model(SPACES, config).to(device)
    flatten(model)
    return model, built.build_update(model, SPACES, config)


def make_batch(seed):
    rng = np.random.default_rng(seed)
    arrays = {
        "obs": rng.standard_normal((*SHAPE, 11)).astype(np.float32),
        "next_obs": rng.standard_normal((*SHAPE, 11)).astype(np.float32),
        "action": rng.uniform(-2.0, 2.0, (*SHAPE, 3)).astype(np.float32),
        "reward": rng.standard_normal(SHAPE).astype(np.float32),
        "discount": np.where(rng.random(SHAPE) < 0.2, 0.0, 0.97).astype(np.float32),
    }
    return Batch(arrays, (), SHAPE[0] * SHAPE[1], SHAPE[0] * SHAPE[1])


def train(update, seed):
    for minibatch in update.minibatches(make_batch(seed), 0.0):
        minibatch.gradient()
        minibatch.step()


def draw_on_host(update, monkeypatch):
    """Let both devices draw the same actions: their generators differ."""
    read = update._read
    noise = torch.randn(2, *SHAPE, 3, generator=torch.Generator().manual_seed(1))

    def with_noise(arrays):
        found = read(arrays)
        here, there = noise.to(found.reward.device)
        return found._replace(noise=here, next_noise=there)

    monkeypatch.setattr(update, "_read", with_noise)


def test_updates_are_those_of_the_cpu(monkeypatch):
    found = []
    for device in ("cpu", "cuda"):
        model, update = make(device)
        draw_on_host(update, monkeypatch)
        train(update, 1)
        train(update, 2)
        found.append((update.metrics(), update.state(), flatten(model).vector_P.cpu()))
    (theirs, their_state, their_policy), (ours, our_state, our_policy) = found
    for key, value in theirs.items():
        assert ours[key] == pytest.approx(value, rel=1e-3, abs=1e-4), key
    for key in ("critics", "targets", "temperature"):
        torch.testing.assert_close(our_state[key].cpu(), their_state[key], rtol=1e-2, atol=1e-3)
    torch.testing.assert_close(our_policy, their_policy, rtol=1e-2, atol=1e-3)


def test_a_version_waits_once():
    model, update = make("cuda")
    snapshot = Snapshot(model)
    buffer = np.empty(snapshot.nbytes, np.uint8)
    train(update, 1)  # records the graphs
    before = WAITS.count
    train(update, 2)
    snapshot.write_to(buffer)
    update.metrics()
    assert WAITS.count == before + 1


def test_the_same_seed_gives_the_same_parameters(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = []
    for name, seed in (("one", 1), ("other", 1), ("another", 2)):
        run(
            run=name, env=CONTINUOUS, algorithm=SAC, device="cuda", engine="inline", seed=seed,
            max_env_steps=1024,
        )  # fmt: skip
        state = saved_state(Path("runs") / name)
        kept = (".weights", ".state.update")
        found.append({key: x for key, x in state.items() if key.startswith(kept)})
    assert found[0] and differences(found[0], found[1]) == []
    assert differences(found[0], found[2])


def test_a_run_goes_on_without_its_gpu_and_with_it_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = run(env=CONTINUOUS, algorithm=SAC, device="cuda", run="moved", max_env_steps=1024)
    for device, limit in (("cpu", 2048), ("cuda", 3072)):
        again = resume(Path("runs/moved"), max_env_steps=limit, device=device)
        assert again["device"].startswith(device) and again["updates"] > first["updates"]
        first = again
