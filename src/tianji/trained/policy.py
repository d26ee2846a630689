"""A trained policy: what `tianji.load(RUN)` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from tianji.algorithms.memory import PolicyState, greedy_actions, state_size
from tianji.algorithms.registry import load_algorithm
from tianji.channels.layout import Layout
from tianji.checkpoint.load import choose, read_checkpoint
from tianji.checkpoint.sets import main_folder
from tianji.config.files import load_config
from tianji.envs.build import EnvSources, probe_all
from tianji.envs.interface import Spaces
from tianji.envs.masks import with_mask
from tianji.envs.spaces import Masked, ObservationWriter, make_action_cast, observation_leaves
from tianji.errors import CheckpointError, UsageError
from tianji.run_folder.paths import CONFIG_FILE
from tianji.types import MEMORY, NEXT_MEMORY, OBS, Array, leaf_name
from tianji.wording import counted

if TYPE_CHECKING:
    import torch

    from tianji.algorithms.interface import Acting, Algorithm, ValueFunction
    from tianji.config.run import RunConfig


@dataclass(frozen=True, repr=False)
class LoadedPolicy:
    """The policy of one checkpoint.

    >>> policy = load_policy(Path("runs/cartpole-v1-ppo-s1"))
    >>> observation, _ = env.reset()
    >>> env.step(policy.act(observation))

    A policy with a memory needs its state, which acting updates:

    >>> state = policy.start()
    >>> env.step(policy.act(observation, state))

    note: why it is not the checkpoint that was asked for; "" where it is
    num_env_steps: environment steps before the checkpoint; exploration may depend on them
    rng: act(deterministic=False) draws from it; seeded with the seed of the run
    """

    config: RunConfig
    version: int
    checkpoint: Path
    note: str
    spaces: Spaces
    algorithm: Algorithm
    model: torch.nn.Module
    acting: Acting
    num_env_steps: int
    rng: np.random.Generator

    def __repr__(self) -> str:
        trained_on = ", ".join(self.config.tasks)
        return f"<LoadedPolicy {self.config.algorithm.name} on {trained_on}, {self.checkpoint}>"

    def start(self, num_envs: int = 1) -> PolicyState:
        """Return the state of a policy with a memory at the start of an episode, for one
        environment or for the environments of a batch."""
        if not isinstance(num_envs, Integral) or num_envs < 1:
            raise UsageError(
                f"policy.start({num_envs!r}): the number of environments must be a whole number of "
                "at least 1."
            )
        return PolicyState(num_envs, state_size(self.acting))

    def act(
        self,
        obs: Any,
        state: PolicyState | None = None,
        *,
        deterministic: bool = True,
        action_mask: Any = None,
    ) -> Any:
        """Return the action for one observation as the environment gives it, or the actions for a
        batch of them (a leading axis in every array).

        state: what a policy with a memory remembers of the episode, from start(); it is updated.
        deterministic: the greedy action, the best or most likely one. Otherwise an action is drawn
        as in training: from the policy's distribution, or epsilon-greedily for DQN. action_mask:
        1 for each legal action, where the run was trained with info["action_mask"].
        """
        obs = self._with_mask(obs, action_mask)
        batch_size = _batch_size(self.spaces.observation, obs)
        leaves = _to_leaves(self.spaces.observation, obs, batch_size)
        state = self._checked(state, batch_size or 1)
        if deterministic:
            chosen = greedy_actions(self.acting, leaves, state)
        else:
            chosen = self.sample(leaves, self.rng, state)
        actions = make_action_cast(self.spaces.action)(chosen)
        return actions[0] if batch_size is None else actions

    def value(self, obs: Any, state: PolicyState | None = None, action_mask: Any = None) -> Any:
        """Return the value of one observation, or an array of the values of a batch: the expected
        discounted return from there on, in the environment's rewards.

        state: as in act(), before the observation; it is not changed.
        PPO and IMPALA: the value network, scaled back where normalize.rewards is on. DQN: the
        largest Q value, of the legal actions. Algorithms that gather gradients learn no values, and
        SAC's critics, which rate actions, are not part of its policy.
        """
        obs = self._with_mask(obs, action_mask)
        batch_size = _batch_size(self.spaces.observation, obs)
        state = self._checked(state, batch_size or 1)
        states = [state.array_NS] if state_size(self.acting) else []
        values = self._value(_to_leaves(self.spaces.observation, obs, batch_size), *states)
        return float(values[0]) if batch_size is None else values

    def _with_mask(self, obs: Any, action_mask: Any) -> Any:
        """Return the observation as the space of a run with action masks has it. One mask counts
        for all observations of a batch."""
        space = self.spaces.observation
        if isinstance(space, Masked):
            masked = with_mask(obs, action_mask, space, self.spaces.action)
            _check_rows(masked[space.key], _batch_size(space, masked))
            return masked
        if action_mask is not None:
            raise UsageError(
                "This policy was trained without action masks, so action_mask would change nothing."
            )
        return obs

    def sample(
        self, leaves: Mapping[str, Array], rng: np.random.Generator, state: PolicyState
    ) -> Array:
        """Draw actions as in training, for a batch in arrays by leaf name; update the state."""
        fields = self.algorithm.fields(self.spaces, self.config)
        layout = Layout(fields, num_rows=1, num_envs=len(next(iter(leaves.values()))))
        unroll = {name: array[None] for name, array in leaves.items()}
        unroll |= {field.name: np.zeros(layout.shape(field), field.dtype) for field in fields}
        if MEMORY in unroll:
            unroll[MEMORY][:] = state.array_NS
        self.acting.begin(rng, unroll, 0, self.num_env_steps)
        actions = self.acting.act(unroll, 0)
        if NEXT_MEMORY in unroll:
            state.array_NS[:] = unroll[NEXT_MEMORY]
        return actions

    def _checked(self, state: PolicyState | None, num_envs: int) -> PolicyState:
        """Return the state of so many environments; UsageError where it is missing or another."""
        if state is None and not state_size(self.acting):
            return self.start(num_envs)
        if not isinstance(state, PolicyState):
            given = "" if state is None else f", and {state!r} was given"
            raise UsageError(
                f"This policy has a memory (model.memory = {self.config.model.memory}), so that "
                f"it needs its state{given}: state = policy.start() at the start of an episode, "
                "then policy.act(observation, state)."
                if state_size(self.acting)
                else f"The state of a policy is what policy.start() returns{given}."
            )
        if len(state.array_NS) != num_envs:
            raise UsageError(
                f"The state is that of {counted(len(state.array_NS), 'environment')}, and there "
                f"are observations of {num_envs}. Use policy.start({num_envs})."
            )
        return state

    @cached_property
    def _value(self) -> ValueFunction:
        """Build the value function at its first use; read the update's state if it is needed."""
        build = self.algorithm.build_value
        if build is None:
            raise UsageError(
                f"A policy of {self.config.algorithm.name} has no values. policy.value() needs one "
                "of an algorithm that gives it some: ppo, impala or dqn."
            )
        needs_state = self.config.normalize.rewards
        state = read_checkpoint(self.checkpoint).state["update"] if needs_state else {}
        return build(self.model, self.spaces, self.config, state)


def load_policy(
    run_dir: Path, checkpoint: str = "best", env: EnvSources | None = None
) -> LoadedPolicy:
    """Build a run's policy from its config and the weights of a checkpoint.

    checkpoint: `best`, `latest`, or a checkpoint's name. env: only for runs that were trained on an
    environment which cannot be found by name any more.
    """
    config = load_config(run_dir / CONFIG_FILE)
    choice = choose(main_folder(run_dir), checkpoint, weights_only=True)
    snapshot = read_checkpoint(choice.path, weights_only=True)
    source = env or config.envs or config.env
    spaces = probe_all(source, config.env_kwargs, action_mask=config.action_mask).spaces
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
        num_env_steps=int(snapshot.facts.get("env_steps", 0)),
        rng=np.random.default_rng(config.seed),
    )


def _batch_size(space: gym.Space[Any], obs: Any) -> int | None:
    """Return the length of the leading axis; None for a single observation."""
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


def _check_rows(mask: Array, batch_size: int | None) -> None:
    """Raise UsageError for a batch of masks that is not one for each observation."""
    if mask.ndim == 1 or mask.shape[:-1] == (batch_size,):
        return
    there_are = "is one observation" if batch_size is None else f"are {batch_size} observations"
    raise UsageError(
        f"The action mask has shape {mask.shape}, and there {there_are}: it takes one mask for "
        "each, or one for all."
    )


def _to_leaves(space: gym.Space[Any], obs: Any, batch_size: int | None) -> dict[str, Array]:
    rows = {
        leaf_name(OBS, leaf.key): np.zeros((1, batch_size or 1, *leaf.shape), leaf.dtype)
        for leaf in observation_leaves(space)
    }
    writer = ObservationWriter(space)
    writer.write(obs, rows, (0, 0) if batch_size is None else 0)
    return {name: array[0] for name, array in rows.items()}
