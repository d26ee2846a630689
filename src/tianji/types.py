"""The data that travels between the rooms.

An *unroll* holds T consecutive steps of the N environments of one actor, side by side, time first.
The actor writes it row by row into one slot of shared memory, and the learner (or the replay store)
reads the same bytes.

Rows of a slot, for unroll length T and lookahead n (1 unless n-step returns need more):

    num_rows = T + n - 1             steps; the first n - 1 repeat the end of the unroll before
    obs has num_rows + 1 rows        obs[t + 1] follows step t; the last row is for bootstrapping

Items start in rows 0 .. T - 1. `valid[t, n]` is False in a row that only reset environment n; such
a row is never training data. For a valid step, obs[t + 1] is the true next observation, also at the
end of an episode, unless the world has separate fields for final observations (`final_obs`, see
envs).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Unroll: TypeAlias = Mapping[str, Array]
"""The arrays of one slot by field name: views into shared memory, {"obs": ..., "reward": ...}."""


class Parts(NamedTuple):
    """Arrays that belong side by side along an axis, where joining them is left to the reader."""

    arrays: tuple[Array, ...]
    axis: int


Observed: TypeAlias = Array | Parts
"""Observations of a batch: one array, or the arrays of several unrolls."""


def joined(array: Observed) -> Array:
    """Return the parts as one array."""
    return np.concatenate(array.arrays, array.axis) if isinstance(array, Parts) else array


Clock: TypeAlias = Callable[[], int]
"""Returns nanoseconds that never fall: CLOCK_MONOTONIC, or the virtual clock of a simulation."""

RoleKind: TypeAlias = Literal["actor", "buffer", "learner", "inference", "evaluator"]

Per: TypeAlias = Literal["step", "obs", "row", "unroll"]


@dataclass(frozen=True, slots=True)
class Field:
    """One array of an unroll.

    per="step":   [num_rows, N, *shape]      action, reward, ...
    per="obs":    [history + num_rows + 1, N, *shape]  observations
    per="row":    [num_rows, *shape]         one value for all environments
    per="unroll": [N, *shape]                one value for the whole unroll (a recurrent state)

    >>> Field("reward", "float32", ())
    """

    name: str
    dtype: str
    shape: tuple[int, ...] = ()
    per: Per = "step"
    history: int = 0
    """Observations before row 0, repeated from the unroll before: a stack of frames looks back."""


class Stamp(NamedTuple):
    """The origin of one unroll; it travels beside the slot.

    >>> Stamp(actor=3, round=17, oldest_version=40, newest_version=41, env_steps=256,
    ...       started_ns=1_000_000, finished_ns=9_000_000)
    """

    actor: int
    """Index of the actor."""
    round: int
    """Number of unrolls that this actor made before, in the whole run, restarts included."""
    oldest_version: int
    """Oldest policy version that acted in its new rows. Rows that are repeated for n-step returns
    do not count: their version is older in serial training too."""
    newest_version: int
    env_steps: int
    """Valid steps among the rows that are new in this unroll."""
    started_ns: int
    finished_ns: int
    """Times of CLOCK_MONOTONIC, which all processes of a machine share."""


class Episode(NamedTuple):
    """One finished episode: Episode(9_000_000, episode_return=200.0, length=200, actor=3)."""

    finished_ns: int
    episode_return: float
    length: int
    actor: int


OBS = "obs"
NEXT_OBS = "next_obs"
"""Prefix of the observations that transitions lead to, in batches of a replay store."""
FINAL_OBS = "final_obs"
AGE = "age"
"""Fields that count, beside each frame of a stacked observation, those since the reset."""
LIFE_LOST = "life_lost"
"""A field of worlds that mark steps which lose a life: an end for the learner, not of a game."""
PLACE = "place"
"""A field of unrolls that go on from one to the next: the round in which the environments were
reset, the rows made since then before this unroll, and the rows that are new in it. An unroll
continues the one before if it begins where that one ended."""
MEMORY = "memory"
"""A field of policies with a memory: the state that each environment starts the unroll with."""
NEXT_MEMORY = "next_memory"
"""A field beside it: the state after the newest row, with which the next unroll starts."""
PRIORITY = "priority"
"""A field of the steps that items begin with: how much is to be learned from each, where actors
compute it."""

GRADIENTS = "gradients"
"""A field of tokens whose actors train on a memory of their own: the gradients that the actor has
added with it, 1, or 0 while the memory holds too little."""


def leaf_name(prefix: str, key: str) -> str:
    """Return the field name of one entry of a dictionary observation: `obs.camera`."""
    return f"{prefix}.{key}" if key else prefix


def is_observation(name: str) -> bool:
    """Return whether the field of this name is an observation or a leaf of one."""
    return name == OBS or name.startswith(f"{OBS}.")


def frame_names(arrays: Mapping[str, Array]) -> list[str]:
    """Return the names of the observations that are stored as single frames, beside their ages."""
    return [n for n in arrays if is_observation(n) and AGE + n[len(OBS) :] in arrays]


@dataclass(frozen=True, slots=True)
class Batch:
    """The data that the learner takes at once, for one version.

    Queue stores give unrolls side by side: arrays [num_rows(+1), N_total, ...] named as the fields.
    Replay stores give minibatches: arrays [num_updates, minibatch, ...] named `obs`, `action`,
    `reward` (n-step sum), `discount` (gamma^m, 0 after a termination), `next_obs`; with priorities,
    `weight` and [num_updates] `largest_weight`, its divisor. Observations on a GPU are tensors.

    >>> Batch({"obs": obs, "reward": reward}, (stamp,), num_items=1, num_steps=256)
    """

    arrays: Mapping[str, Any]
    """Arrays by name; observations of several unrolls may be Parts."""
    stamps: tuple[Stamp, ...]
    num_items: int
    """Number of items, as the algorithm counts them."""
    num_steps: int
    """Number of environment steps (for replay: sampled steps)."""
    unique_steps: int = 0
    """Environment steps that reach a gradient for the first time with it."""
    keys: Array | None = None
    """Where the store finds each item again, so that priorities can be sent back; None where the
    items are not found again."""
