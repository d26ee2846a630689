"""Batches of a fixed shape, as a GPU needs them, make the same updates as batches of valid rows."""

import dataclasses

import numpy as np
import pytest
import torch
from gymnasium.spaces import Discrete

from tianji.algorithms.actor_critic.preprocessor import Preprocessor
from tianji.algorithms.ppo.recorded import RecordedPasses
from tianji.algorithms.registry import load_algorithm
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.envs.spaces import Frames
from tianji.models.tensors import flatten
from tianji.types import Batch, Stamp

ROWS, ENVS, ACTIONS = 6, 4, 3
SPACES = Spaces(Frames(4, (8, 8)), Discrete(ACTIONS))
ALGORITHMS = {
    "ppo": {"epochs": 1, "minibatch_size": ROWS * ENVS, "unroll_length": ROWS},
    "impala": {"unroll_length": ROWS},
}


def make_batch(seed, share_valid):
    rng = np.random.default_rng(seed)
    shape = (ROWS, ENVS)
    valid = rng.random(shape) < share_valid
    terminated = (rng.random(shape) < 0.2) & valid
    arrays = {
        "obs": rng.integers(256, size=(ROWS + 4, ENVS, 8, 8), dtype=np.uint8),
        "age": rng.integers(20, size=(ROWS + 1, ENVS), dtype=np.uint8),
        "action": rng.integers(ACTIONS, size=shape),
        "log_prob": rng.uniform(-1.5, -0.9, shape).astype(np.float32),
        "reward": rng.standard_normal(shape).astype(np.float32),
        "terminated": terminated,
        "truncated": (rng.random(shape) < 0.2) & valid & ~terminated,
        "valid": valid,
    }
    num_valid = int(valid.sum())
    return Batch(arrays, (Stamp(0, 0, 0, 0, num_valid, 0, 0),), 1, num_valid)


def trained(name, batch, is_padded, monkeypatch, **more):
    """Train on one batch; return the last gradient, the metrics and the number of updates."""
    process = Preprocessor.process

    def padded(self, batch):
        return dataclasses.replace(process(self, batch), is_padded=is_padded)

    monkeypatch.setattr(Preprocessor, "process", padded)
    config = RunConfig(num_envs=ENVS, algorithm={"name": name, **ALGORITHMS[name], **more})
    torch.manual_seed(0)
    algorithm = load_algorithm(name)
    model = algorithm.build_model(SPACES, config)
    update = algorithm.build_update(model, SPACES, config)
    num_updates = 0
    for minibatch in update.minibatches(batch, 0.0):
        minibatch.gradient()
        minibatch.step()
        num_updates += 1
    monkeypatch.undo()
    return flatten(model).gradient_P.clone(), update.metrics(), num_updates


@pytest.mark.parametrize("share_valid", [1.0, 0.7])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_rows_with_weight_0_change_nothing(name, share_valid, monkeypatch):
    for seed in range(3):
        batch = make_batch(seed, share_valid)
        gradient, metrics, _ = trained(name, batch, False, monkeypatch)
        padded_gradient, padded_metrics, _ = trained(name, batch, True, monkeypatch)
        torch.testing.assert_close(padded_gradient, gradient, rtol=1e-3, atol=1e-5)
        assert padded_metrics == pytest.approx(metrics, rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("share_valid", [1.0, 0.7])
def test_an_early_stop_looks_at_valid_rows_alone(share_valid, monkeypatch):
    """An epoch is judged after it was made, so the second one is the first that moved the KL."""
    batch, settings = make_batch(0, share_valid), {"epochs": 8, "learning_rate": 1e-3}
    numbers = {}
    for target_kl in (1e-9, 2e-3, 1e9):
        more = {**settings, "target_kl": target_kl}
        _, metrics, alone = trained("ppo", batch, False, monkeypatch, **more)
        _, padded_metrics, padded = trained("ppo", batch, True, monkeypatch, **more)
        assert padded == alone
        assert padded_metrics["approx_kl"] == pytest.approx(metrics["approx_kl"], rel=0.02)
        numbers[target_kl] = padded
    assert numbers[1e-9] < numbers[2e-3] < numbers[1e9] == 8


class Judgements:
    """Counts how often the KL of an epoch is asked for."""

    def __init__(self, monkeypatch):
        self.count, ask = 0, RecordedPasses.kl_of_epoch

        def counted(passes, epoch):
            self.count += 1
            return ask(passes, epoch)

        monkeypatch.setattr(RecordedPasses, "kl_of_epoch", counted)


def test_the_last_epoch_is_not_judged(monkeypatch):
    """On a GPU each judgement is a wait, and after the last epoch there is nothing to stop."""
    with monkeypatch.context() as patch:
        asked = Judgements(patch)
        trained("ppo", make_batch(0, 1.0), True, patch, epochs=3, target_kl=1e9)
        assert asked.count == 2
