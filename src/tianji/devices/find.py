"""Finds the device that a run asks for, before any process starts and without loading torch."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from pathlib import Path

from tianji.devices.nvml import list_gpus
from tianji.errors import UsageError

NAMES = re.compile(r"auto|cpu|cuda(:\d+)?")


def find_device(asked: str, is_worthwhile: bool = True) -> str:
    """Return `cpu` or `cuda:N` for what a person asked; UsageError if there is no such device.

    is_worthwhile: observations are images, so that `auto` means a GPU where there is one.
    """
    if not NAMES.fullmatch(asked):
        raise UsageError(
            f"device is '{asked}'; allowed are auto, cpu, cuda, and cuda:N for the GPU with number "
            "N, counted from 0."
        )
    if asked == "cpu" or (asked == "auto" and not is_worthwhile):
        return "cpu"
    gpus, has_cuda = list_gpus(), torch_has_cuda()
    if asked == "auto":
        return "cuda:0" if gpus and has_cuda else "cpu"
    index = int(asked.partition(":")[2] or 0)
    if has_cuda and index < len(gpus):
        return f"cuda:{index}"
    raise UsageError(_explain_missing(asked, len(gpus), has_cuda))


def torch_has_cuda() -> bool:
    """Return whether the installed torch is built with CUDA, from its version file."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    text = (Path(spec.origin).parent / "version.py").read_text()
    return re.search(r"^cuda\b.*=\s*'", text, re.MULTILINE) is not None


def _explain_missing(asked: str, num_gpus: int, has_cuda: bool) -> str:
    if not has_cuda:
        version = importlib.metadata.version("torch")
        why = f"the installed torch {version} is built without CUDA"
    elif num_gpus:
        known = ", ".join(f"cuda:{index}" for index in range(num_gpus))
        return f"device is '{asked}', but this machine has only {known}. Ask for one of them."
    else:
        why = "the system finds no GPU with a working driver (`nvidia-smi` shows what it finds)"
    return f"device is '{asked}', but {why}. Use --device cpu, or fix that first."
