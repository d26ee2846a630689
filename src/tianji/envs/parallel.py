"""Environments of many agents that share one policy: PettingZoo's parallel environments.

    tianji train --env pettingzoo:pettingzoo.sisl.multiwalker_v9 --num-envs 9

Each agent is a column of the world, in the order of `possible_agents`. An agent that leaves has
ended its episode, even if nothing is said of it; its column is not valid until it is there again,
in the same episode of the environment or after the next reset. An environment without agents is
reset in its next step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from tianji.envs.interface import NO_MASK, Spaces, Stateful, World
from tianji.envs.masks import Masks, masked_space
from tianji.envs.returned import STORE_ERRORS, AgentsCheck
from tianji.envs.single import env_seeds
from tianji.envs.spaces import ObservationWriter, make_action_cast, observation_fields
from tianji.errors import EnvironmentFailed, UsageError
from tianji.types import Array, Unroll
from tianji.wording import kind_of

PARTS = ("possible_agents", "reset", "step", "observation_space", "action_space")
MOST_EMPTY_RESETS = 10
"""Resets in a row without an agent: more of them are no bad luck."""
MOST_ABSENT_STEPS = 500
"""Steps in a row in which `agents` lists somebody and nobody is there: the episode never ends."""


def missing_parts(env: Any) -> list[str]:
    """Return what it lacks to be a parallel environment."""
    return [part for part in PARTS if not hasattr(env, part)]


def check_parallel(env: Any, name: str) -> None:
    """Raise UsageError unless it looks like a parallel environment whose agents are alike."""
    if missing := missing_parts(env):
        raise UsageError(
            f"Environment '{name}' makes {kind_of(env)}, which is no parallel environment "
            f"of PettingZoo: it has no {', '.join(missing)}."
        )
    agents = list(env.possible_agents)
    if not agents:
        raise UsageError(f"Environment '{name}' has no possible_agents.")
    for kind in ("observation", "action"):
        spaces = {agent: getattr(env, f"{kind}_space")(agent) for agent in agents}
        first = spaces[agents[0]]
        for agent, space in spaces.items():
            if space != first:
                raise UsageError(
                    f"All agents of environment '{name}' must have the same spaces, since they "
                    f"share one policy: the {kind} space of '{agents[0]}' is {first}, that of "
                    f"'{agent}' is {space}. Pad them (SuperSuit: pad_observations_v0, "
                    "pad_action_space_v0)."
                )


class ParallelWorld(World):
    """A World over parallel environments, one after another in this process."""

    keeps_final = False

    def __init__(self, envs: Sequence[Any], name: str, action_mask: str = NO_MASK) -> None:
        self.envs = tuple(envs)
        self.agents = tuple(envs[0].possible_agents)
        self.num_envs = len(envs) * len(self.agents)
        agent = self.agents[0]
        observation: gym.Space[Any] = envs[0].observation_space(agent)
        action: gym.Space[Any] = envs[0].action_space(agent)
        self._masks: Masks | None = None
        if action_mask != NO_MASK:
            observation = space = masked_space(observation, action, action_mask, name)
            self._masks = Masks(space, action, name)
        self.spaces = Spaces(observation, action)
        self._name = name
        self._names = [field.name for field in observation_fields(observation, keeps_final=False)]
        self._writer = ObservationWriter(observation)
        self._cast = make_action_cast(action)
        self._check = AgentsCheck(name, observation)
        self._checks_left = 2 * self.num_envs
        self._num_empty_resets = [0] * len(envs)
        """Resets in a row that brought no agent."""
        self._num_absent_steps = [0] * len(envs)
        """Steps in a row after which nobody was there, although the episode goes on."""
        self._is_present = np.zeros(self.num_envs, np.bool_)
        self._actions: Array | None = None
        self._closed = False

    @property
    def remarks(self) -> tuple[str, ...]:
        return self._check.remarks

    def reset(self, seed: int, unroll: Unroll) -> None:
        for e, env_seed in enumerate(env_seeds(seed, len(self.envs))):
            self._begin(e, unroll, 0, env_seed)

    def send(self, actions: Array) -> None:
        self._actions = self._cast(actions)

    def recv(self, unroll: Unroll, t: int) -> None:
        actions, self._actions = self._actions, None
        assert actions is not None, "recv() needs a send() before it"
        for name in ("reward", "terminated", "truncated", "valid"):
            unroll[name][t] = 0
        for e, env in enumerate(self.envs):
            if env.agents:
                self._step(e, actions, unroll, t)
            else:
                self._begin(e, unroll, t + 1, None)

    def _begin(self, e: int, unroll: Unroll, row: int, seed: int | None) -> None:
        """Reset an environment; columns of agents that join later are 0."""
        env, columns = self.envs[e], self._columns(e)
        observations, infos = self._check.parts_of_reset(env.reset(seed=seed))
        for name in self._names:
            unroll[name][row, columns] = 0
        self._is_present[columns] = False
        for i, agent in enumerate(self.agents):
            if agent in env.agents:
                said = self._check.first_observation(observations, agent), infos.get(agent, {})
                self._observe("reset()", said, False, unroll, (row, columns.start + i))
                self._is_present[columns.start + i] = True
        self._count_resets(e)

    def _count_resets(self, e: int) -> None:
        """Raise EnvironmentFailed after a number of resets in a row that brought no agent."""
        if self.envs[e].agents:
            self._num_empty_resets[e] = 0
            return
        self._num_empty_resets[e] += 1
        if self._num_empty_resets[e] > MOST_EMPTY_RESETS:
            raise EnvironmentFailed(
                f"Environment '{self._name}' has no agents: reset() left `agents` empty "
                f"{self._num_empty_resets[e]} times in a row, so there is nobody to act. Let "
                "reset() set `agents`, such as self.agents = list(self.possible_agents)."
            )

    def _step(self, e: int, actions: Array, unroll: Unroll, t: int) -> None:
        env, columns = self.envs[e], self._columns(e)
        for name in self._names:  # those of absent agents stay as they are
            unroll[name][t + 1, columns] = unroll[name][t, columns]
        there = [i for i in range(len(self.agents)) if self._is_present[columns.start + i]]
        chosen = {self.agents[i]: actions[columns.start + i] for i in there}
        check = self._check
        observations, rewards, terminated, truncated, infos = check.parts_of_step(env.step(chosen))
        remaining = set(env.agents)
        for i, agent in enumerate(self.agents):
            column = columns.start + i
            was_present, is_seen = self._is_present[column], agent in observations
            if not (was_present or is_seen):
                continue
            is_over = check.agents_flag(terminated, agent, "terminated")
            is_told_cut = check.agents_flag(truncated, agent, "truncated")
            # One that acted and is neither seen nor told of has left too: its episode ends here.
            is_gone = agent not in remaining or not is_seen
            is_cut = not is_over and (is_told_cut or is_gone)
            has_ended = is_over or is_cut
            self._is_present[column] = not has_ended
            if is_seen:  # else the observation before it stays, which was copied
                said = observations[agent], infos.get(agent, {})
                self._observe("step()", said, has_ended, unroll, (t + 1, column))
            if was_present:
                unroll["reward"][t, column] = check.agents_reward(rewards, agent, is_seen)
                unroll["terminated"][t, column] = is_over
                unroll["truncated"][t, column] = is_cut
                unroll["valid"][t, column] = True
        self._count_absences(e)

    def _count_absences(self, e: int) -> None:
        """Raise EnvironmentFailed if an episode goes on and on although all agents have left."""
        listed = self.envs[e].agents
        is_stuck = bool(listed) and not self._is_present[self._columns(e)].any()
        self._num_absent_steps[e] = self._num_absent_steps[e] + 1 if is_stuck else 0
        if self._num_absent_steps[e] > MOST_ABSENT_STEPS:
            raise EnvironmentFailed(
                f"Environment '{self._name}' goes on without agents: `agents` lists "
                f"{list(listed)!s:.80}, but for {self._num_absent_steps[e]} steps nobody was there "
                "to act. Whoever is terminated or truncated must leave `agents` in the same step; "
                "all others must be in `possible_agents` and have an observation in every step."
            )

    def _observe(
        self,
        source: str,
        said: tuple[Any, Any],
        has_ended: bool,
        unroll: Unroll,
        place: tuple[int, int],
    ) -> None:
        """Store what an agent sees. said: its observation and its info, which `source` returned."""
        observation, info = said
        if self._masks is not None:
            observation = self._masks.one(observation, info, has_ended)
        agent = self.agents[place[1] % len(self.agents)]
        if self._checks_left:
            self._checks_left -= 1
            self.first_info = info
            self._check.agents_observation(observation, agent, source)
        try:
            self._writer.write(observation, unroll, place)
        except STORE_ERRORS:
            self._check.agents_observation(observation, agent, source)  # says what is wrong with it
            raise

    def _columns(self, e: int) -> slice:
        return slice(e * len(self.agents), (e + 1) * len(self.agents))

    def get_state(self) -> dict[str, Any] | None:
        if not all(isinstance(env, Stateful) for env in self.envs):
            return None
        states = [env.get_state() for env in self.envs]
        return {"present": self._is_present.copy(), "envs": states}

    def set_state(self, state: dict[str, Any]) -> None:
        self._is_present[:] = state["present"]
        for env, env_state in zip(self.envs, state["envs"], strict=True):
            env.reset(seed=0)  # wrappers refuse to step before the first reset
            env.set_state(env_state)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            for env in self.envs:
                env.close()
