"""What an actor needs from environments: one protocol, whatever they are.

world = build_world("CartPole-v1", {}, num_envs)
world.reset(seed, unroll)                        # writes unroll["obs"][0]
for t in range(num_rows):
    world.step(actions, unroll, t)               # writes obs[t+1], reward[t], terminated[t], ...
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym

from tianji.types import Array, Field, Unroll


@dataclass(frozen=True, slots=True)
class Spaces:
    """The spaces of one environment (not batched)."""

    observation: gym.Space[Any]
    action: gym.Space[Any]


class World(Protocol):
    """N environments stepped together, with every autoreset mode turned into one behaviour.

    step() writes row t of reward, terminated, truncated, valid and row t + 1 of the observation
    leaves. `valid` is False for a row in which an environment was only reset: its action was
    ignored, its reward is 0 and nothing ended in it. That is the row after an episode's end, or one
    in which an environment failed and was replaced: then the steps before are cut at obs[t]. Where
    the world resets in the same step, obs[t + 1] is already the next episode's first observation
    and the true final one is written to row t of the `final_obs` leaves, for the environments whose
    episode ended (the others' entries are left as they were); `keeps_final` is True then, and the
    layout has those fields. Otherwise obs[t + 1] is the final observation itself.

    Actions come as policies make them: integers from 0 for Discrete [N] and MultiDiscrete [N, k],
    float32 within the bounds for Box [N, ...], int8 for MultiBinary [N, ...]. The world adds the
    space's `start` and casts to its dtype; it never keeps or changes the array it was given.
    """

    num_envs: int
    spaces: Spaces
    keeps_final: bool

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the environments return otherwise than their spaces say, and is converted."""
        ...

    def observation_fields(self) -> tuple[Field, ...]:
        """`obs` (or `obs.key` ...) with per="obs", then `final_obs...` with per="step" if kept."""
        ...

    def reset(self, seed: int, unroll: Unroll) -> None:
        """Begin new episodes in all environments, each with its own seed; write row 0 of obs."""
        ...

    def step(self, actions: Array, unroll: Unroll, t: int) -> None: ...

    def get_state(self) -> dict[str, Any] | None:
        """All that is needed to go on exactly here, as JSON-able values and numpy arrays; None
        where an environment does not offer it. The last observations are the caller's to keep."""
        ...

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on where get_state() was called, also in a world that was never reset."""
        ...

    def close(self) -> None:
        """Release the environments; a second call does nothing."""
        ...


@runtime_checkable
class Stateful(Protocol):
    """The two methods by which an environment (or a wrapper around it) offers exact resume.

    The state is a dictionary of JSON-able values and numpy arrays, and holds all that the
    environment needs to go on as if nothing had happened. `np_random` of the environment and the
    step count of Gymnasium's TimeLimit are saved beside it and need not be in it.
    """

    def get_state(self) -> dict[str, Any]: ...

    def set_state(self, state: dict[str, Any]) -> None: ...
