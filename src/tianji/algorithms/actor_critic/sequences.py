"""The unrolls of a batch as sequences for a policy with a memory.

T: time, N: environments side by side, S: numbers of a state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tianji.ops.returns import Bools, Floats
from tianji.types import FINAL_OBS, MEMORY, Array, Observed, joined


class Sequences(NamedTuple):
    """One sequence for each environment of a batch.

    state_NS: the state that the actor had at the start of the unroll
    resets_T1N: [T + 1, N], the rows before which a state is forgotten
    """

    state_NS: Floats
    resets_T1N: Bools

    def select_envs(self, part: slice) -> Sequences:
        return Sequences(self.state_NS[part], self.resets_T1N[:, part])


def sequences_of(arrays: Mapping[str, Array]) -> Sequences | None:
    """Return the sequences of a batch; None where the policy has no memory.

    Where final observations have fields of their own, the row after an end begins an episode.
    Elsewhere that row shows the end, whose value is wanted with the state of its episode, and the
    row after it begins one: a row that is not valid only resets.
    """
    if MEMORY not in arrays:
        return None
    state_NS = arrays[MEMORY]
    is_over_TN = ~arrays["valid"].astype(np.bool_, copy=False)
    if any(name.startswith(FINAL_OBS) for name in arrays):
        is_over_TN |= arrays["terminated"].astype(np.bool_, copy=False)
        is_over_TN |= arrays["truncated"].astype(np.bool_, copy=False)
    # A state of zeros is that of an episode which begins with the unroll.
    is_first_N: Bools = (state_NS == 0.0).all(1)
    return Sequences(state_NS, np.concatenate([is_first_N[None], is_over_TN]))


def counted_steps(arrays: Mapping[str, Array], burn_in: int) -> Bools:
    """Return the steps that are trained on: valid ones, but for those of the burn-in whose state
    still depends on the one that the actor stored, [T, N]."""
    valid_TN: Bools = arrays["valid"].astype(np.bool_, copy=False)
    found = sequences_of(arrays) if burn_in else None
    if found is None:
        return valid_TN
    is_fresh_TN = np.logical_or.accumulate(found.resets_T1N[:-1])
    is_fresh_TN[burn_in:] = True
    return valid_TN & is_fresh_TN


def without_unseen(obs: Observed, valid_TN: Bools) -> Array:
    """Return observations with zeros in rows where no valid step begins or ends: they may hold
    anything, and a sequence passes through them."""
    is_seen_T1N = np.zeros((len(valid_TN) + 1, valid_TN.shape[1]), np.bool_)
    is_seen_T1N[:-1] = valid_TN
    is_seen_T1N[1:] |= valid_TN
    return zero_unless(is_seen_T1N, joined(obs))


def zero_unless(is_kept_TN: Bools, array: Array) -> Array:
    """Return an array [T, N, ...] with zeros in the other places."""
    if is_kept_TN.all():
        return array
    shape = is_kept_TN.shape + (1,) * (array.ndim - 2)
    return np.where(is_kept_TN.reshape(shape), array, array.dtype.type(0))
