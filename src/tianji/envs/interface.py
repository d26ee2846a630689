"""The protocol between an actor and its environments.

One step in one call:

    world = build_world("CartPole-v1", {}, num_envs)
    world.reset(seed, unroll)                    # writes unroll["obs"][0]
    for t in range(num_rows):
        world.step(actions, unroll, t)           # writes obs[t + 1], reward[t], terminated[t], ...

The same step in two phases, with time for other work between them:

        world.send(actions)
        world.recv(unroll, t)
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from tianji.envs.spaces import INFO_MASK, NO_MASK, Spaces, observation_fields
from tianji.types import Array, Field, Unroll

__all__ = ["INFO_MASK", "NO_MASK", "Spaces", "Stateful", "World"]


class World(Protocol):
    """N environments that step together and reset themselves, whatever their autoreset mode.

    recv() writes row t of reward, terminated, truncated and valid, and row t + 1 of the observation
    leaves. `valid` is False where an environment was only reset: its action was ignored, its reward
    is 0 and nothing ended. That is the row after the end of an episode, or the row in which an
    environment failed and was replaced; the steps before it are then cut at obs[t]. Where columns
    are agents (envs/parallel.py), so are all rows in which an agent is away, or appears.

    A world with `keeps_final` resets in the same step: obs[t + 1] is the first observation of the
    next episode, and row t of the `final_obs` leaves holds the final observation of each episode
    that ended; other entries of that row keep their old values. In all other worlds obs[t + 1] is
    the final observation.

    Actions come as policies make them: integers from 0 for Discrete [N] and MultiDiscrete [N, k],
    float32 within the bounds for Box [N, ...], int8 for MultiBinary [N, ...]. The world adds the
    space's `start` and casts to its dtype. It neither keeps nor changes the array that it gets.
    """

    num_envs: int
    spaces: Spaces
    keeps_final: bool
    steps_alone: bool = False
    """The environments step by themselves between send() and recv()."""
    more_fields: tuple[Field, ...] = ()
    """Fields of its own that it writes beside those of every world."""
    first_info: Mapping[str, Any] = MappingProxyType({})
    """The info of the first environment's last reset; after the first step, that of this step."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """Returned values that differ from what the spaces say and are converted, in words."""

    def fields(self) -> tuple[Field, ...]:
        """Return the fields `obs` (or `obs.key` ...), then `final_obs...` if it keeps those, and
        its own fields."""
        observed = observation_fields(self.spaces.observation, self.keeps_final)
        return (*observed, *self.more_fields)

    def reset(self, seed: int, unroll: Unroll) -> None:
        """Start new episodes, each environment with a seed of its own, and write row 0 of obs."""

    def send(self, actions: Array) -> None:
        """Start one step. The environments may work until recv(), which must be the next call."""

    def recv(self, unroll: Unroll, t: int) -> None:
        """Wait until the step is done and write it into row t."""

    def step(self, actions: Array, unroll: Unroll, t: int) -> None:
        """Send and receive at once."""
        self.send(actions)
        self.recv(unroll, t)

    def get_state(self) -> dict[str, Any] | None:
        """Return the exact state as JSON values and arrays; None if an environment offers none.

        The last observations are not part of it: the caller keeps them.
        """

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue where get_state() was called, also in a world that was never reset."""

    def close(self) -> None:
        """Release the environments; a second call does nothing."""


@runtime_checkable
class Stateful(Protocol):
    """The two methods with which an environment, or a wrapper around it, offers exact resume.

    The state is a dictionary of JSON values and NumPy arrays that holds everything the environment
    needs to continue. TianJi saves the environment's `np_random` and the step count of Gymnasium's
    TimeLimit beside it, so that the state need not contain them.
    """

    def get_state(self) -> dict[str, Any]: ...

    def set_state(self, state: dict[str, Any]) -> None: ...
