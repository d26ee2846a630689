"""Stacks of frames, rebuilt from frames that are stored once, on any device.

F: rows of frames (K - 1 more than observations), R: rows of observations, N: environments,
K: frames of a stack, B: chosen observations.
"""

from __future__ import annotations

import torch
from torch import Tensor


def stack_rows(frames_FN: Tensor, age_RN: Tensor, index_B: Tensor | None) -> Tensor:
    """Return the stacks [B, K, ...] of observations by their position among all R * N; None: all
    of them, in their own order."""
    num_rows, num_envs = age_RN.shape
    if index_B is None:
        index_B = torch.arange(num_rows * num_envs, device=frames_FN.device)
    row_B = torch.div(index_B, num_envs, rounding_mode="floor")
    return stack_frames(frames_FN, age_RN, row_B, index_B - row_B * num_envs)


def stack_frames(frames_FN: Tensor, age_RN: Tensor, row_B: Tensor, env_B: Tensor) -> Tensor:
    """Return the stacks [B, K, ...] of these observations, oldest frame first.

    age_RN: observations since the reset; frames from before it are zero.
    """
    num_frames = len(frames_FN) - len(age_RN) + 1
    back_K = torch.arange(num_frames, device=frames_FN.device)
    stacks = frames_FN[row_B[:, None] + back_K, env_B[:, None]]
    return hide_unseen(stacks, age_RN[row_B, env_B])


def hide_unseen(stacks: Tensor, age_B: Tensor) -> Tensor:
    """Return the stacks [B, K, ...] with zeros for frames from before the reset."""
    num_frames = stacks.shape[1]
    back_K = torch.arange(num_frames - 1, -1, -1, device=stacks.device)
    is_seen_BK = back_K <= age_B[:, None]
    return stacks * is_seen_BK.view(*is_seen_BK.shape, *(1 for _ in stacks.shape[2:]))
