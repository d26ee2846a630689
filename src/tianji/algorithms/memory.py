"""The memory of a policy outside of training: one state for each environment.

N: environments, S: numbers of a state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tianji.algorithms.interface import Acting
from tianji.errors import UsageError
from tianji.types import Array, Unroll
from tianji.wording import counted


class PolicyState:
    """What a policy remembers of each environment; acting updates it.

    >>> state = policy.start()                    # one environment, at the start of an episode
    >>> action = policy.act(observation, state)
    >>> state.forget()                            # the next episode begins

    The state of a policy without a memory is empty.
    """

    def __init__(self, num_envs: int, size: int) -> None:
        self.array_NS = np.zeros((num_envs, size), np.float32)

    def forget(self, ended_N: ArrayLike | None = None) -> None:
        """Begin new episodes in all environments, or in those that are marked."""
        marks = np.asarray(True if ended_N is None else ended_N, np.bool_)
        if marks.shape not in ((), self.array_NS.shape[:1]):
            raise UsageError(
                f"state.forget(ended): ended has shape {marks.shape}, and the state is that of "
                f"{counted(len(self.array_NS), 'environment')}. Give one mark for each, or nothing "
                "to forget all."
            )
        self.array_NS[marks] = 0.0


def state_size(acting: Acting) -> int:
    """Return how many numbers a policy remembers of each environment; 0 without a memory."""
    return int(getattr(acting, "state_size", 0))


def greedy_actions(acting: Acting, obs: Mapping[str, Array], state: PolicyState) -> Array:
    """Return the greedy actions, and update the state."""
    greedy: Callable[..., Any] = acting.greedy
    actions: Array = greedy(obs, state.array_NS) if state_size(acting) else greedy(obs)
    return actions


def forget_ended(unroll: Unroll, row: int, state_NS: Array) -> None:
    """Reset the states of environments whose episode has ended with this row, or that it reset."""
    is_over_N = unroll["terminated"][row] | unroll["truncated"][row] | ~unroll["valid"][row]
    state_NS[is_over_N] = 0.0
