"""What travels between the rooms.

An *unroll* is what one actor hands over: T consecutive steps of its N environments, side by side,
time first. It lies in one slot of shared memory and is written in place, row by row, while the
actor works. The learner (or the replay store) reads the same bytes.

Rows of a slot, for unroll length T and lookahead n (1 unless n-step returns look further):

    num_rows = T + n - 1             steps; the first n - 1 repeat the end of the unroll before
    obs has num_rows + 1 rows        obs[t + 1] is what step t led to, the last one bootstraps

Items start in rows 0 .. T - 1. `valid[t, n]` is False where environment n was being reset: such a
row is never training data. For a valid step, obs[t + 1] is the true next observation, also at the
end of an episode, unless the world keeps final observations apart (`final_obs`, see envs).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Unroll: TypeAlias = Mapping[str, Array]
"""The arrays of one slot by field name, views into shared memory."""

Clock: TypeAlias = Callable[[], int]
"""Nanoseconds that never fall: CLOCK_MONOTONIC, or the virtual clock of a simulation."""

Per: TypeAlias = Literal["step", "obs", "row", "unroll"]


@dataclass(frozen=True, slots=True)
class Field:
    """One array of an unroll.

    per="step":   [num_rows, N, *shape]      action, reward, ...
    per="obs":    [num_rows + 1, N, *shape]  observations
    per="row":    [num_rows, *shape]         one value for all environments
    per="unroll": [N, *shape]                one value for the whole unroll (a recurrent state)

    >>> Field("reward", "float32", ())
    """

    name: str
    dtype: str
    shape: tuple[int, ...] = ()
    per: Per = "step"


class Stamp(NamedTuple):
    """What every unroll says about itself; it travels beside the slot."""

    actor: int
    """Index of the actor that made it."""
    round: int
    """How many unrolls this actor made before it, in the whole run, restarts included."""
    oldest_version: int
    """The oldest policy version that acted in its new rows. Rows that are repeated for n-step
    returns were made under the version before, in serial training too, and do not count."""
    newest_version: int
    env_steps: int
    """Valid steps among the rows that are new in this unroll."""
    started_ns: int
    finished_ns: int
    """CLOCK_MONOTONIC, which all processes of a machine share."""


class Episode(NamedTuple):
    """One finished episode of one environment."""

    finished_ns: int
    episode_return: float
    length: int
    actor: int


OBS = "obs"
FINAL_OBS = "final_obs"


def leaf_name(prefix: str, key: str) -> str:
    """Name of the field of one entry of a dictionary observation: `obs.camera`."""
    return f"{prefix}.{key}" if key else prefix


def observation_names(arrays: Mapping[str, Array]) -> list[str]:
    """Return the names of the fields that are observations."""
    return [name for name in arrays if name == OBS or name.startswith(f"{OBS}.")]


@dataclass(frozen=True, slots=True)
class Batch:
    """What the learner takes at once: the data behind one version.

    Queue stores give unrolls side by side: arrays [num_rows(+1), N_total, ...] named as the fields.
    Replay stores give minibatches: arrays [num_updates, minibatch, ...] named `obs`, `action`,
    `reward` (n-step sum), `discount` (gamma^m, 0 where the episode terminated), `next_obs`.
    """

    arrays: Mapping[str, Array]
    stamps: tuple[Stamp, ...]
    num_items: int
    """Items taken, counted as the algorithm counts items."""
    num_steps: int
    """Environment steps in it (for replay: sampled steps)."""
    keys: Array | None = None
    """Where the store finds each item again, so that priorities can be sent back; None where the
    items are not found again."""
