"""Finds the device that a run asks for, before any process starts.

device = find_device("auto")      # "cuda:0" where there is a GPU, else "cpu"
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch

from tianji.errors import UsageError

NAMES = re.compile(r"auto|cpu|cuda(:\d+)?")


@dataclass(frozen=True, slots=True)
class Gpu:
    """Gpu(index=0, name="NVIDIA H200", total_bytes=150_000_000_000, free_bytes=149_000_000_000)"""

    index: int
    name: str
    total_bytes: int
    free_bytes: int


def list_gpus() -> list[Gpu]:
    """Return the GPUs of this machine that torch can use."""
    if not torch.cuda.is_available():
        return []
    found = []
    for index in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(index)
        found.append(Gpu(index, torch.cuda.get_device_name(index), total, free))
    return found


def find_device(asked: str) -> str:
    """Return `cpu` or `cuda:N` for what a person asked; UsageError if there is no such device."""
    if not NAMES.fullmatch(asked):
        raise UsageError(
            f"device is '{asked}'; allowed are auto, cpu, cuda, and cuda:N for the GPU with number "
            "N, counted from 0."
        )
    if asked == "cpu":
        return "cpu"
    num_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if asked == "auto":
        return "cuda:0" if num_gpus else "cpu"
    index = int(asked.partition(":")[2] or 0)
    if index < num_gpus:
        return f"cuda:{index}"
    raise UsageError(_explain_missing(asked, num_gpus))


def _explain_missing(asked: str, num_gpus: int) -> str:
    if num_gpus:
        known = ", ".join(f"cuda:{index}" for index in range(num_gpus))
        return f"device is '{asked}', but this machine has only {known}. Ask for one of them."
    if torch.version.cuda is None:
        why = f"the installed torch {torch.__version__} is built without CUDA"
    else:
        why = "torch finds no GPU with a working driver (`nvidia-smi` shows what the system finds)"
    return f"device is '{asked}', but {why}. Use --device cpu, or mend that first."
