"""A trained policy in hand: what `tianji.load(RUN)` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from tianji.algorithms.registry import load_algorithm
from tianji.checkpoint.load import choose, read_checkpoint
from tianji.config.files import load_config
from tianji.config.runs import CONFIG_FILE
from tianji.envs.build import EnvSources, probe_all
from tianji.envs.interface import Spaces
from tianji.envs.spaces import ObservationWriter, make_action_cast, observation_leaves
from tianji.errors import CheckpointError, UsageError
from tianji.types import OBS, Array, leaf_name

if TYPE_CHECKING:
    import torch

    from tianji.algorithms.interface import Acting, Algorithm
    from tianji.config.run import RunConfig


@dataclass(frozen=True)
class LoadedPolicy:
    """The policy of one checkpoint, acting greedily.

    >>> policy = load_policy(Path("runs/cartpole-v1-ppo-s1"))
    >>> observation, _ = env.reset()
    >>> env.step(policy.act(observation))
    """

    config: RunConfig
    version: int
    checkpoint: Path
    note: str
    """Why it is not the checkpoint that was asked for; "" where it is."""
    spaces: Spaces
    algorithm: Algorithm
    model: torch.nn.Module
    acting: Acting

    def act(self, obs: Any) -> Any:
        """The greedy action for one observation as the environment gives it, or the actions for a
        batch of them (a leading axis in every array)."""
        batch_size = _batch_size(self.spaces.observation, obs)
        leaves = _to_leaves(self.spaces.observation, obs, batch_size)
        actions = make_action_cast(self.spaces.action)(self.greedy(leaves))
        return actions[0] if batch_size is None else actions

    def greedy(self, leaves: Mapping[str, Array]) -> Array:
        """The same for a batch that lies in arrays by leaf name; actions as the policy has them."""
        return self.acting.greedy(leaves)


def load_policy(
    run_dir: Path, checkpoint: str = "best", env: EnvSources | None = None
) -> LoadedPolicy:
    """Build a run's policy from its config and the weights of a checkpoint.

    checkpoint: `best`, `latest`, or a checkpoint's name. env: only for runs that were trained on an
    environment which cannot be found by name any more.
    """
    config = load_config(run_dir / CONFIG_FILE)
    choice = choose(run_dir, checkpoint, weights_only=True)
    snapshot = read_checkpoint(choice.path, weights_only=True)
    spaces = probe_all(env or config.envs or config.env, config.env_kwargs).spaces
    algorithm = load_algorithm(config.algorithm.name)
    model = algorithm.build_model(spaces, config)
    try:
        model.load_state_dict(dict(snapshot.weights))
    except RuntimeError as error:
        raise CheckpointError(
            f"Checkpoint {choice.path} does not fit the network that {run_dir / CONFIG_FILE} "
            f"describes: {error}"
        ) from error
    model.eval()
    return LoadedPolicy(
        config=config,
        version=snapshot.version,
        checkpoint=choice.path,
        note=choice.note,
        spaces=spaces,
        algorithm=algorithm,
        model=model,
        acting=algorithm.build_acting(model, spaces, config),
    )


def _batch_size(space: gym.Space[Any], obs: Any) -> int | None:
    """Length of the leading axis; None for a single observation."""
    try:
        while isinstance(space, gym.spaces.Dict | gym.spaces.Tuple):
            key: Any = next(iter(space.spaces)) if isinstance(space, gym.spaces.Dict) else 0
            space, obs = space[key], obs[key]
    except (KeyError, IndexError, TypeError) as error:
        raise UsageError(f"The observation has no entry {error}, but its space {space}.") from error
    shape, expected = np.shape(obs), space.shape or ()
    if shape == expected:
        return None
    if shape[1:] == expected:
        return int(shape[0])
    raise UsageError(
        f"The observation has shape {shape}; this policy takes {expected}, or a batch of them: "
        f"(N, {', '.join(map(str, expected))})."
    )


def _to_leaves(space: gym.Space[Any], obs: Any, batch_size: int | None) -> dict[str, Array]:
    rows = {
        leaf_name(OBS, leaf.key): np.zeros((1, batch_size or 1, *leaf.shape), leaf.dtype)
        for leaf in observation_leaves(space)
    }
    writer = ObservationWriter(space)
    writer.write(obs, rows, (0, 0) if batch_size is None else 0)
    return {name: array[0] for name, array in rows.items()}
