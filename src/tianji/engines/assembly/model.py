"""Seeds and initial weights, the same in every process of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tianji.algorithms.interface import Gather
from tianji.algorithms.registry import load_algorithm
from tianji.config.seeding import seed_for
from tianji.devices.pinned import pin
from tianji.devices.twins import TWINS
from tianji.engines.spec import RunSpec
from tianji.models.networks.precision import is_bfloat16_fast, set_precision
from tianji.models.networks.stacked import has_convolutions
from tianji.models.tensors import flatten
from tianji.types import Array, frame_names


def build_model(spec: RunSpec) -> torch.nn.Module:
    """Build the model with the same initial weights in every process, whatever its threads: an
    orthogonal matrix from two threads differs in its last bits from that of one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(seed_for(spec.config.seed, "model"))
    model = load_algorithm(spec.config.algorithm.name).build_model(spec.spaces, spec.config)
    torch.set_num_threads(threads)
    return model


def is_repeatable(spec: RunSpec) -> bool:
    """Return whether the same seed gives the same parameters, on a GPU too: float32, and no lag."""
    is_serial = spec.plan.lag_target == 0 or spec.config.engine == "inline"
    return is_serial and spec.config.model.precision == "float32"


def on_device(model: torch.nn.Module, spec: RunSpec, device: str) -> torch.nn.Module:
    """Move a model to a device and set the precision that it computes in there."""
    if device != "cpu":
        torch.cuda.set_device(torch.device(device))
        # Some of cuDNN's kernels for the gradients of convolutions add up in any order, and they
        # are the fastest for some shapes. All other kernels of our networks but that of the
        # pooling in the residual torso add up in a fixed order. torch's switch for all of them
        # would refuse graphs and fill every new tensor.
        if is_repeatable(spec):
            torch.backends.cudnn.deterministic = True
        if spec.config.model.precision == "float32":  # not the 19 bits of TF32
            torch.backends.cudnn.allow_tf32 = False
    model.to(torch.device(device))
    flatten(model)
    asked = spec.config.model.precision
    set_precision(model, asked == "bfloat16" or (asked == "auto" and device != "cpu"))
    return model


def acting_model(spec: RunSpec, device: str) -> torch.nn.Module:
    """Build the model of an actor or of a server. On a CPU with instructions for it, convolutions
    that only choose actions compute in bfloat16, unless the run asks for another precision."""
    model = on_device(build_model(spec), spec, device)
    cadence = load_algorithm(spec.config.algorithm.name).cadence(spec.config)
    is_free = spec.config.model.precision == "auto" and not isinstance(cadence, Gather)
    if is_free and device == "cpu" and has_convolutions(model):
        set_precision(model, is_bfloat16_fast())
    return model


def use_device(device: str, is_urgent: bool) -> None:
    """Make this thread's work on a GPU go to that one, on a stream of its own.

    is_urgent: it goes before what other streams have asked for."""
    if device != "cpu":
        torch.cuda.set_device(torch.device(device))
        stream: Any = torch.cuda.Stream(priority=-int(is_urgent))  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())  # models were built there
        torch.cuda.set_stream(stream)


def prepare_device(spec: RunSpec, slots: Mapping[str, Array], memory: Array) -> None:
    """Let the GPU read the slots by itself, and keep a twin of frames that stay in one process.

    slots: the fields of all slots. memory: all bytes of the slots.
    """
    plan = spec.plan
    if plan.device == "cpu":
        return
    torch.cuda.set_device(torch.device(plan.device))
    pin(memory)
    if plan.inference == "learner" and not plan.replay_rows:  # replay copies rows from the slots
        for name in frame_names(slots):
            TWINS.add(slots[name], torch.device(plan.device))
