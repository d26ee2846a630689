"""A small environment with many actions, of which few are legal at a time.

tianji train --env tianji.envs.doors:Doors --algorithm ppo
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary

from tianji.envs.spaces import ACTION_MASK
from tianji.envs.worlds import SmallWorld
from tianji.errors import TianjiError
from tianji.types import Array


class Doors(SmallWorld):
    """A row of locked doors: each has a key that opens it, among `num_keys`.

    In every step the right key and a few others, drawn anew, are on the table; `action_mask` says
    which. Opening a door gives 1, and there is one step for each door: the best return is
    `num_doors`. It observes the number of the door, one-hot.

    mask: where it is given, in the info or as an observation.
    illegal: a key that is not on the table does nothing (`wait`), or ends the run (`refuse`).
    """

    remembers = ("door", "table")

    def __init__(
        self,
        num_doors: int = 8,
        num_keys: int = 50,
        num_legal: int = 3,
        mask: Literal["info", "observation", "none"] = "info",
        illegal: Literal["wait", "refuse"] = "wait",
    ) -> None:
        super().__init__(length=num_doors, end="terminated")
        self.num_keys, self.num_legal = num_keys, num_legal
        self.mask, self.illegal = mask, illegal
        self.door, self.table = 0, np.zeros(num_keys, np.int8)
        self.keys = np.random.default_rng(0).integers(num_keys, size=num_doors + 1)
        self.action_space = Discrete(num_keys)
        self.observation_space = Box(0.0, 1.0, (num_doors + 1,), np.float32)
        if mask == "observation":
            self.observation_space = Dict(
                {"door": self.observation_space, ACTION_MASK: MultiBinary(num_keys)}
            )

    def begin(self, seeded: bool) -> None:
        self.door = 0
        self._lay_table()

    def _lay_table(self) -> None:
        drawn = self.np_random.permutation(self.num_keys)
        others = drawn[drawn != self.keys[self.door]][: self.num_legal - 1]
        self.table = np.zeros(self.num_keys, np.int8)
        self.table[[self.keys[self.door], *others]] = 1

    def act(self, action: Any) -> float:
        if self.illegal == "refuse" and not self.table[action]:
            raise TianjiError(f"Key {action} is not on the table of door {self.door}.")
        has_opened = bool(self.table[action]) and action == self.keys[self.door]
        self.door += int(has_opened)
        self._lay_table()
        return float(has_opened)

    def observe(self) -> Any:
        door: Array = np.zeros(self.length + 1, np.float32)
        door[self.door] = 1.0
        return {"door": door, ACTION_MASK: self.table} if self.mask == "observation" else door

    def inform(self) -> dict[str, Any]:
        return {ACTION_MASK: self.table.copy()} if self.mask == "info" else {}
