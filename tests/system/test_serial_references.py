"""With one actor, inline, A3C is A2C and Gorila is DQN: runs give, bit for bit, what a plain loop
over environments, gradients and optimiser steps gives."""

import numpy as np
import pytest
import torch

from tests.system.runs import differences, run, saved_state
from tianji.algorithms.registry import load_algorithm
from tianji.channels.layout import STANDARD_FIELDS, Layout
from tianji.config.run import RunConfig
from tianji.engines.arithmetic import arithmetic_of_a_run
from tianji.engines.assembly.model import seed_for
from tianji.envs.build import build_world
from tianji.envs.spaces import observation_fields
from tianji.models.optimizers import Adam, Optimizer, RMSProp
from tianji.models.tensors import flatten

N = 4
A3C = {"name": "a3c", "unroll_length": 8, "learning_rate": 0.003}
GORILA = {
    "name": "gorila", "unroll_length": 3, "batch_size": 16, "warmup_steps": 100, "n_step": 1,
    "replay_size": 10_000, "target_period_updates": 20, "epsilon_decay_steps": 500,
}  # fmt: skip


class Serial:
    """One world, one network, one optimiser."""

    def __init__(self, settings, make_rule):
        self.config = config = RunConfig(algorithm=settings, num_envs=N, num_actors=1)
        algorithm = load_algorithm(settings["name"])
        self.world = build_world(config.env, {}, N, None, 1)
        spaces = self.world.spaces
        torch.manual_seed(seed_for(config.seed, "model"))
        self.model = algorithm.build_model(spaces, config)
        self.acting = algorithm.build_acting(self.model, spaces, config)
        self.estimator = algorithm.build_estimator(self.model, spaces, config)
        flat, length = flatten(self.model), settings["unroll_length"]
        rule = make_rule(flat, config.algorithm)
        self.optimizer = Optimizer(flat, rule, config.algorithm.max_grad_norm)
        self.flat = flat
        fields = (
            *observation_fields(spaces.observation, self.world.keeps_final),
            *algorithm.fields(spaces, config),
            *STANDARD_FIELDS,
        )
        layout = Layout(fields, length, N)
        memory = np.zeros(layout.slot_bytes, np.uint8)
        self.unroll = {name: array[0] for name, array in layout.arrays(memory, 1).items()}
        sequence = np.random.SeedSequence(seed_for(config.seed, "actor"), spawn_key=(0,))
        self.rng = np.random.default_rng(sequence)
        self.world.reset(int(self.rng.integers(2**31)), self.unroll)
        self.num_unrolls = 0

    def act(self):
        """One unroll, which goes on where the last one ended."""
        unroll, length = self.unroll, len(self.unroll["reward"])
        if self.num_unrolls:
            unroll["obs"][0] = unroll["obs"][-1]
        self.acting.begin(self.rng, unroll, 0, self.num_unrolls * length * N)
        for t in range(length):
            self.world.step(self.acting.act(unroll, t), unroll, t)
        self.acting.finish(unroll, 0)
        self.num_unrolls += 1

    def step(self, version, rows):
        self.estimator.begin(version)
        self.estimator.add(rows, len(self.unroll["reward"]))
        self.flat.gradient_P.copy_(torch.from_numpy(self.estimator.sum_P))
        self.optimizer.step(self.config.algorithm.learning_rate, dict)

    def weights(self):
        return {f".weights.{name}": x.numpy() for name, x in self.model.state_dict().items()}


def a2c(num_versions):
    serial = Serial(A3C, lambda flat, config: RMSProp(flat, config.optimizer_epsilon))
    for version in range(num_versions):
        serial.act()
        serial.step(version, serial.unroll)
    return serial


def dqn(num_versions):
    """All steps ever made lie in a list, as (obs, action, reward, terminated, valid, next obs)."""
    serial, steps, version = Serial(GORILA, lambda flat, _: Adam(flat, 1e-8)), [], 0
    rng = np.random.default_rng(seed_for(serial.config.seed, "store"))
    gamma = np.float32(serial.config.algorithm.gamma)
    while version < num_versions:
        serial.act()
        rows = {name: array.copy() for name, array in serial.unroll.items()}
        for t in range(GORILA["unroll_length"]):
            for n in range(N):
                steps.append(
                    (rows["obs"][t, n], rows["action"][t, n], rows["reward"][t, n],
                     rows["terminated"][t, n], rows["valid"][t, n], rows["obs"][t + 1, n])
                )  # fmt: skip
        if len(steps) < GORILA["warmup_steps"]:
            continue
        drawn = []
        while (missing := GORILA["batch_size"] - len(drawn)) > 0:
            drawn += [i for i in rng.integers(len(steps), size=missing) if steps[i][4]]
        obs, action, reward, terminated, _, following = zip(*(steps[i] for i in drawn), strict=True)
        sample = {
            "obs": np.stack(obs),
            "next_obs": np.stack(following),
            "action": np.array(action),
            "reward": np.array(reward),
            "discount": np.where(terminated, np.float32(0.0), gamma),
        }
        serial.step(version, sample)
        version += 1
    return serial


@pytest.mark.parametrize(("settings", "reference"), [(A3C, a2c), (GORILA, dqn)])
@pytest.mark.parametrize("max_lag", [0, 100])
def test_a_run_with_one_actor_is_its_serial_reference(
    settings, reference, max_lag, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    summary = run(
        engine="inline", algorithm=settings, num_envs=N, num_actors=1, max_lag=max_lag,
        max_env_steps=1500,
    )  # fmt: skip
    assert summary["version"] > 30
    assert summary["lag_versions"]["max"] == summary["discarded_items"] == 0
    with arithmetic_of_a_run():
        serial = reference(summary["version"])
    assert serial.num_unrolls * settings["unroll_length"] * N >= summary["env_steps"] > 1400
    saved = saved_state(summary["run_dir"])
    weights = {name: value for name, value in saved.items() if name.startswith(".weights")}
    assert differences(weights, serial.weights()) == []
