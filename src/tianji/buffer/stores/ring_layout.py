"""The bytes of a replay store: where each of its arrays lies, and how large it is.

L: lanes, R: rows of a ring, N: environments of a lane, F: final observations of a lane.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tianji.algorithms.interface import OwnReplay
from tianji.channels.layout import ALIGN, Layout
from tianji.types import AGE, FINAL_OBS, OBS, Array, Field, is_observation

STEPS = ("action", "reward", "terminated", "truncated", "valid")
"""Fields of an unroll that are kept for each step."""
HEAD_WORDS = 8
BEGIN, END, FINALS, ORIGIN, MADE = range(5)
"""Words of a lane's head (rings.py)."""
UNKNOWN = -1
"""The value of MADE if no unroll can continue this lane."""
ITEM_BYTES = 64  # of a sampled transition beside its observations
AUTO_SAVE_BYTES = 256 << 20  # checkpoints hold smaller stores: a copy takes hundredths of 1 s
SMALL_FINALS_BYTES = 64 << 20
STEPS_PER_FINAL = 8


class _Part(NamedTuple):
    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return -(-math.prod(self.shape) * np.dtype(self.dtype).itemsize // ALIGN) * ALIGN


@dataclass(frozen=True, slots=True)
class RingLayout:
    """RingLayout(Layout(...), num_lanes=4, capacity=25_000, lookahead=3)"""

    unroll: Layout
    """The layout of the unrolls that are put."""
    num_lanes: int
    capacity: int
    """Rows of a lane that items may begin in."""
    lookahead: int
    """Rows that an item looks ahead: those of its n-step return, at least."""
    has_observations: bool = True
    """False where observations lie in other memory, on a GPU."""

    @property
    def history(self) -> int:
        """Return how many rows before its own an observation looks back."""
        return max(self.unroll.observed().values(), default=0)

    @property
    def num_rows(self) -> int:
        """Return the rows of a lane: those that items begin in, and those that they look at."""
        return self.capacity + self.history + self.lookahead

    @property
    def observations(self) -> tuple[Field, ...]:
        """Return the fields that are observations."""
        return tuple(field for field in self.unroll.fields if is_observation(field.name))

    @property
    def ages(self) -> tuple[Field, ...]:
        return tuple(field for field in self.unroll.fields if _is_of(AGE, field.name))

    @property
    def finals(self) -> tuple[Field, ...]:
        """Return the fields with final observations, where the world keeps them apart."""
        return tuple(field for field in self.unroll.fields if _is_of(FINAL_OBS, field.name))

    @property
    def num_finals(self) -> int:
        """Return how many final observations a lane keeps: most steps end no episode. Where
        episodes are so short that these are too few, the oldest steps are given up earlier."""
        num_envs, num_steps = self.unroll.num_envs, self.num_rows * self.unroll.num_envs
        one = sum(math.prod(f.shape) * np.dtype(f.dtype).itemsize for f in self.finals)
        small = SMALL_FINALS_BYTES // self.num_lanes // max(1, one)
        least = self.unroll.num_rows * num_envs
        return max(least, min(num_steps, max(num_steps // STEPS_PER_FINAL, small)))

    def observation_shape(self, field: Field) -> tuple[int, ...]:
        return (self.num_lanes, self.num_rows, self.unroll.num_envs, *field.shape)

    def _parts(self) -> list[_Part]:
        by_name = {field.name: field for field in self.unroll.fields}
        steps = [by_name[name] for name in STEPS]
        lane_rows = self.num_lanes, self.num_rows
        per_step = (*lane_rows, self.unroll.num_envs)
        stored = (*self.ages, *steps, *(self.observations if self.has_observations else ()))
        parts = [
            _Part("head", "int64", (self.num_lanes, HEAD_WORDS)),
            _Part("version", "int64", lane_rows),
            _Part("used", "bool", per_step),
            *(_Part(f.name, f.dtype, (*per_step, *f.shape)) for f in stored),
        ]
        if self.finals:
            per_final = self.num_lanes, self.num_finals
            parts.append(_Part("final", "int32", per_step))
            parts.append(_Part("final_row", "int64", per_final))
            parts += [_Part(f.name, f.dtype, (*per_final, *f.shape)) for f in self.finals]
        return parts

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self._parts())

    @property
    def observation_bytes(self) -> int:
        """Return the bytes of all observations, wherever they lie."""
        return sum(
            math.prod(self.observation_shape(field)) * np.dtype(field.dtype).itemsize
            for field in self.observations
        )

    @property
    def item_bytes(self) -> int:
        """Return the bytes of one sampled transition, of which observations are the most."""
        frames = sum(
            (field.history + 1) * math.prod(field.shape) * np.dtype(field.dtype).itemsize
            for field in self.observations
        )
        return 2 * frames + ITEM_BYTES

    def arrays(self, memory: Any) -> dict[str, Array]:
        """Return views of every array in memory of `nbytes`."""
        found, offset = {}, 0
        for part in self._parts():
            found[part.name] = np.ndarray(part.shape, part.dtype, buffer=memory, offset=offset)
            offset += part.nbytes
        return found

    def count_rows(self, head_LW: Array) -> list[int]:
        """Return how many rows of each lane items may begin in. head_LW: the lanes' heads."""
        begin_L, end_L = head_LW[:, BEGIN].tolist(), head_LW[:, END].tolist()
        pairs = zip(begin_L, end_L, strict=True)
        return [max(0, end - self.lookahead + 1 - begin) for begin, end in pairs]

    def count_steps(self, memory: Any) -> int:
        """Return how many steps lie in this memory that items may begin with."""
        return sum(self.count_rows(self.arrays(memory)["head"])) * self.unroll.num_envs


def own_layout(unroll: Layout, memory: OwnReplay, num_actors: int) -> RingLayout:
    """Return the layout of the replay memory that one of these actors has for itself."""
    capacity = math.ceil(memory.capacity_steps / (num_actors * unroll.num_envs))
    return RingLayout(unroll, 1, capacity, memory.n_step)


def _is_of(prefix: str, name: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")


def sibling(prefix: str, observation: str) -> str:
    """Return the name of another field of the same leaf: `age.camera` for `obs.camera`."""
    return prefix + observation[len(OBS) :]
