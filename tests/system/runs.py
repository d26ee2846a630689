"""Short whole runs for the system tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from tianji.checkpoint.load import latest, read_checkpoint
from tianji.config.run import RunConfig
from tianji.run import resume_run, train_config

QUIET = {"display": "off", "tensorboard": False}
PPO = {"name": "ppo", "unroll_length": 16, "epochs": 2, "minibatch_size": 64}
DQN = {
    "name": "dqn", "unroll_length": 4, "n_step": 3, "batch_size": 32, "updates_per_version": 4,
    "warmup_steps": 128, "replay_size": 1024, "epsilon_decay_steps": 1000,
}  # fmt: skip
PRIORITISED = {
    **DQN, "sampling": "prioritized", "initial_priorities": "actors", "exploration": "ladder",
    "dueling": True,
}  # fmt: skip
APEX = {**DQN, "name": "apex"}
IMPALA = {"name": "impala", "unroll_length": 16}
SAC = {
    "name": "sac", "unroll_length": 4, "batch_size": 32, "updates_per_version": 4,
    "warmup_steps": 128, "replay_size": 1024,
}  # fmt: skip
CONTINUOUS = "tianji.envs.worlds:Continuous"


def run(**values):
    """Train with these settings alone; returns the summary.

    In this process one thread computes: with images the rule is one for each core, and threads that
    wait for each other beside another test take four times the work.
    """
    threads = {"learner_threads": 1} if values.get("engine") == "inline" else {}
    settings = {"num_envs": 8, "observe": QUIET, "plan": {"source": "rule"}, **threads, **values}
    return train_config(RunConfig.model_validate(settings))


def resume(run_dir, **changes):
    """Continue a run; returns the summary."""
    return resume_run(Path(run_dir), changes)


def saved_state(run_dir):
    """Everything the last checkpoint holds, flat, as numpy arrays and plain values."""
    snapshot = read_checkpoint(latest(Path(run_dir)).path)
    return flatten({"weights": dict(snapshot.weights), "state": dict(snapshot.state)})


def flatten(tree, prefix=""):
    if isinstance(tree, dict):
        parts = [flatten(value, f"{prefix}.{key}") for key, value in tree.items()]
        return {key: value for part in parts for key, value in part.items()}
    if isinstance(tree, list | tuple) and any(isinstance(x, dict | np.ndarray) for x in tree):
        return flatten(dict(enumerate(tree)), prefix)
    if isinstance(tree, torch.Tensor):
        return {prefix: tree.numpy()}
    return {prefix: tree}


def differences(one, other, but=()):
    """Names whose values are not equal bit for bit."""
    names = (set(one) | set(other)) - set(but)
    return sorted(name for name in names if not _same(one.get(name), other.get(name)))


def _same(one, other):
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and (
            one.tobytes() == other.tobytes()
        )  # fmt: skip
    return type(one) is type(other) and one == other
