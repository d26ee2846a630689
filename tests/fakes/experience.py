"""Hand-made spaces, unrolls and batches for the tests of algorithms."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from tianji.algorithms.interface import (
    Acting,
    Algorithm,
    Gather,
    QueueCadence,
    ReplayCadence,
    Update,
)
from tianji.algorithms.memory import PolicyState, greedy_actions, state_size
from tianji.algorithms.registry import load_algorithm
from tianji.channels.layout import Layout
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.envs.masks import nth_legal
from tianji.envs.spaces import ACTION_MASK, Masked, choice_sizes, observation_fields
from tianji.types import Array, Batch, Field, Stamp

VECTOR = spaces.Box(-1.0, 1.0, (4,), np.float32)
IMAGE = spaces.Box(0, 255, (12, 12, 3), np.uint8)
TREE = spaces.Dict(
    {
        "arm": spaces.Dict({"angle": spaces.Box(-1.0, 1.0, (3,), np.float64)}),
        "mode": spaces.Discrete(3, start=1),
        "camera": spaces.Box(0, 255, (3, 12, 12), np.uint8),
    }
)
OBSERVATIONS = {"vector": VECTOR, "image": IMAGE, "tree": TREE}
ACTIONS = {
    "discrete": spaces.Discrete(3, start=2),
    "multidiscrete": spaces.MultiDiscrete([2, 3], start=[0, 4]),
    "multibinary": spaces.MultiBinary(3),
    "box": spaces.Box(-0.5, 0.5, (2,), np.float32),
}

REPLAYED = ("dqn", "apex", "sac")
CONTINUOUS = ("sac",)
"""Algorithms that need numbers as actions."""
CHOICES_OF_SIZE = {3: [(0, 3)], 5: [(0, 2), (2, 5)], 6: [(0, 2), (2, 4), (4, 6)]}
"""Where the options of each choice begin and end in a mask, by the size of the mask."""

GATHERED = ("rennala-nigt", "malenia-nigt", "sync-nigt", "afedpg", "rennala-pg")
DESCENDING = ("a3c", "gorila")
"""They gather gradients of a loss, and move by an optimiser."""

STEP_FIELDS = (
    Field("reward", "float32"),
    Field("terminated", "bool"),
    Field("truncated", "bool"),
    Field("valid", "bool"),
)


def empty_unroll(fields: tuple[Field, ...], num_rows: int, num_envs: int) -> dict[str, Array]:
    layout = Layout(fields, num_rows, num_envs)
    return {f.name: np.zeros(layout.shape(f), f.dtype) for f in fields}


def random_observations(space: spaces.Space[Any], fields: dict[str, Array], seed: int) -> None:
    """Fill every observation array, obs and final_obs, with samples of its kind."""
    rng = np.random.default_rng(seed)
    for name, array in fields.items():
        if "obs" not in name:
            continue
        if name.endswith(ACTION_MASK):
            array[:] = random_masks(array.shape, rng)
        elif array.dtype == np.uint8:
            array[:] = rng.integers(256, size=array.shape)
        elif array.dtype == np.int64:
            array[:] = rng.integers(1, 4, size=array.shape)
        else:
            array[:] = rng.standard_normal(array.shape)


def random_masks(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Legal options of each choice among those of ACTIONS: at least one, the first or the last."""
    mask = rng.random(shape) < 0.4
    last = rng.random(shape[:-1]) < 0.5
    for begin, end in CHOICES_OF_SIZE[shape[-1]]:
        mask[..., begin] |= ~last
        mask[..., end - 1] |= last
    return mask.astype(np.int8)


def random_episodes(unroll: dict[str, Array], seed: int, has_reset_rows: bool = True) -> None:
    """Episodes that end in both ways, each followed by a row in which it is only reset, or not."""
    rng = np.random.default_rng(seed)
    num_rows, num_envs = unroll["valid"].shape
    unroll["reward"][:] = rng.standard_normal((num_rows, num_envs))
    unroll["valid"][:] = True
    for n in range(num_envs):
        for t in range(num_rows):
            ended = t and (unroll["terminated"][t - 1, n] or unroll["truncated"][t - 1, n])
            if ended and has_reset_rows:
                unroll["valid"][t, n] = False
            elif rng.random() < 0.2:
                unroll[rng.choice(["terminated", "truncated"])][t, n] = True


class Rig:
    """One algorithm with its model, acting and update, and batches to feed it."""

    def __init__(
        self,
        name: str,
        observation: str = "vector",
        action: str | None = None,
        keeps_final: bool = False,
        settings: dict[str, Any] | None = None,
        has_masks: bool = False,
        **config: Any,
    ) -> None:
        """name: an algorithm, or one with a memory: `ppo+gru`."""
        name, _, memory = name.partition("+")
        if memory:
            config = {**config, "model": {"memory": memory, "memory_size": 5}}
        kind = action or ("box" if name in CONTINUOUS else "discrete")
        seen = OBSERVATIONS[observation]
        size = sum(choice_sizes(ACTIONS[kind])) if has_masks else 0
        observed = Masked(seen, ACTION_MASK, size, from_info=True) if has_masks else seen
        self.spaces = Spaces(observed, ACTIONS[kind])
        small = {"minibatch_size": 16} if name == "ppo" else {}
        small |= {"batch_size": 16, "updates_per_version": 3} if name in REPLAYED else {}
        small |= {"batch_size": 16} if name == "gorila" else {}
        config.setdefault("normalize", {"observations": False, "rewards": False})
        if name in (
            *GATHERED,
            *DESCENDING,
        ):  # their learners see no steps, so there is nothing to normalise
            config = {"num_actors": 1, **config, "normalize": {}}
        algorithm = {"name": name, "unroll_length": 8, **small, **(settings or {})}
        self.config = RunConfig(algorithm=algorithm, num_envs=4, **config)
        self.algorithm: Algorithm = load_algorithm(name)
        self.algorithm.check(self.spaces, self.config)
        self.keeps_final = keeps_final
        torch.manual_seed(self.config.seed)
        self.model = self.algorithm.build_model(self.spaces, self.config)
        self.acting: Acting = self.algorithm.build_acting(self.model, self.spaces, self.config)
        self.model.train()
        self.update: Update = self.algorithm.build_update(self.model, self.spaces, self.config)

    def unroll(self, seed: int, num_rows: int = 8, num_envs: int = 4) -> dict[str, Array]:
        """Acted by the current policy, on made-up observations."""
        fields = observation_fields(self.spaces.observation, self.keeps_final)
        unroll = empty_unroll(
            (*fields, *self.algorithm.fields(self.spaces, self.config), *STEP_FIELDS),
            num_rows,
            num_envs,
        )
        random_observations(self.spaces.observation, unroll, seed)
        random_episodes(unroll, seed)
        self.acting.begin(np.random.default_rng(seed), unroll, 0, 0)
        for t in range(num_rows):
            self.acting.act(unroll, t)
        self.acting.finish(unroll, 0)
        return unroll

    def greedy(self, obs: dict[str, Array]) -> Array:
        """Greedy actions at the start of episodes."""
        num_envs = len(next(iter(obs.values())))
        return greedy_actions(self.acting, obs, PolicyState(num_envs, state_size(self.acting)))

    def batch(self, seed: int) -> Batch:
        match self.algorithm.cadence(self.config):
            case QueueCadence():
                return queue_batch(self.unroll(seed))
            case ReplayCadence():
                return self.replay_batch(seed)
            case Gather():
                return self.gathered_batch(seed)

    def gathered_batch(self, seed: int) -> Batch:
        """Gradients at the parameters as they are, as many as the cadence says."""
        cadence = self.algorithm.cadence(self.config)
        assert isinstance(cadence, Gather) and self.algorithm.build_estimator is not None
        estimator = self.algorithm.build_estimator(self.model, self.spaces, self.config)
        estimator.begin(version=0)
        for _ in range(cadence.num_gradients):
            estimator.add(self.unroll(seed) if cadence.memory is None else self.sample(seed), 8)
        arrays = {"sum": estimator.sum_P, "weight": np.array([float(estimator.count)])}
        return Batch(arrays, (), estimator.count, cadence.trained_steps_per_version)

    def sample(self, seed: int) -> dict[str, Array]:
        """Transitions of one gradient."""
        return {name: array[0] for name, array in self.replay_batch(seed).arrays.items()}

    def replay_batch(self, seed: int) -> Batch:
        settings = self.config.algorithm.model_dump()
        shape = (settings.get("updates_per_version", 1), settings["batch_size"])
        rng = np.random.default_rng(seed)
        flat: dict[str, Array] = {}
        for prefix in ("obs", "next_obs"):
            for field in observation_fields(self.spaces.observation, keeps_final=False):
                name = prefix + field.name.removeprefix("obs")
                flat[name] = np.zeros((*shape, *field.shape), field.dtype)
        random_observations(self.spaces.observation, flat, seed)
        space = self.spaces.action
        if isinstance(space, spaces.Box):
            drawn = rng.uniform(space.low, space.high, (*shape, *space.shape))
            flat["action"] = drawn.astype(np.float32)
        else:
            flat["action"] = rng.integers(3, size=shape)
        if (name := f"obs.{ACTION_MASK}") in flat:
            masks = flat[name].reshape(-1, flat[name].shape[-1])
            flat["action"] = nth_legal(flat["action"].reshape(-1), masks).reshape(shape)
        flat["reward"] = rng.standard_normal(shape).astype(np.float32)
        flat["discount"] = np.where(rng.random(shape) < 0.2, 0.0, 0.99).astype(np.float32)
        return Batch(flat, (), shape[0] * shape[1], shape[0] * shape[1])

    def train(self, batch: Batch, progress: float = 0.0) -> dict[str, float]:
        """All updates of a batch; returns the metrics."""
        self.count_updates(batch, progress)
        return dict(self.update.metrics())

    def count_updates(self, batch: Batch, progress: float = 0.0) -> int:
        """Make all updates of a batch; returns how many they were."""
        count = 0
        for minibatch in self.update.minibatches(batch, progress):
            minibatch.gradient()
            minibatch.step()
            count += 1
        return count

    def parameters(self) -> torch.Tensor:
        return torch.cat([p.detach().reshape(-1).clone() for p in self.model.parameters()])


def queue_batch(unroll: dict[str, Array]) -> Batch:
    num_steps = int(np.count_nonzero(unroll["valid"]))
    return Batch(unroll, (Stamp(0, 0, 0, 0, num_steps, 0, 0),), 1, num_steps)
