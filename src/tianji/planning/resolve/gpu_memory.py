"""The memory that a run takes on its GPU, part by part, checked before any process starts.

Networks of a person's own are counted by their parameters alone. Networks that a learner does not
publish, such as critics, are counted by the record of the algorithm. What torch and the libraries
under it take is an allowance; everything else follows from shapes.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np

from tianji.algorithms.interface import Cadence, Gather, QueueCadence, ReplayCadence
from tianji.algorithms.registry import load_algorithm
from tianji.config.advice import advise
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.devices.nvml import Gpu, list_gpus
from tianji.envs.spaces import observation_leaves
from tianji.errors import UsageError
from tianji.models.sizes import is_image, torso_outputs
from tianji.planning.resolve.places import Places
from tianji.planning.resolve.slots import FLOAT_BYTES, Run, Slots
from tianji.planning.solve.demand import SMALLEST_SHOWN, mib
from tianji.types import AGE, OBS, is_observation
from tianji.wording import to_percent

SAFE_SHARE = 0.9
"""Share of the free memory that a run may take: other programs and the driver need some."""
CONTEXT_BYTES = 700 << 20
"""Each process takes this for CUDA's context, cuBLAS and cuDNN, and what torch holds back."""
KEPT_OF_A_LAYER = 3
"""Copies of a layer's result while gradients are computed: before and after its activation, and the
gradient."""
KEPT_OF_AN_IMAGE = 2
"""Copies of an image in the precision of the network: as numbers, and scaled."""
BATCH_COPIES = 2
"""Copies of a queue's batch: in the order of time, and shuffled for an epoch."""


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """The memory of a run on its GPU, in bytes.

    context: what each process that uses the GPU takes by itself.
    parameters: all networks, their gradients, the optimiser's state and targets.
    batch: observations of a batch, and those that a CUDA graph reads.
    activations: results of the layers and their gradients, for one update.
    evaluation: results of two layers, for the evaluation of the batch before training.
    unrolls: slots whose observations stay on the GPU, where inference is in the learner's process.
    replay: observations of a replay store on the GPU.
    """

    context: int
    parameters: int
    batch: int
    activations: int
    evaluation: int
    unrolls: int
    replay: int

    @property
    def parts(self) -> dict[str, int]:
        return asdict(self)

    @property
    def total(self) -> int:
        return sum(self.parts.values())

    def fits(self, device: str) -> bool:
        gpu = _find_gpu(device)
        return gpu is None or self.total <= SAFE_SHARE * gpu.free_bytes

    def check(self, config: RunConfig, device: str) -> None:
        """Raise UsageError if the GPU has too little free memory, with the setting to change."""
        gpu = _find_gpu(device)
        if gpu is None or self.fits(device):
            return
        terms = " + ".join(
            f"{name} {mib(size)} MiB" for name, size in self.parts.items() if size >= SMALLEST_SHOWN
        )
        raise UsageError(
            f"This run does not fit on {device} ({gpu.name}): {terms} = {mib(self.total)} MiB. "
            f"{mib(gpu.free_bytes)} of {mib(gpu.total_bytes)} MiB are free there, and a run may "
            f"take {to_percent(SAFE_SHARE)} of that. {self._advice(config)}"
        )

    def _advice(self, config: RunConfig) -> str:
        """Name the settings of the largest part."""
        largest = max(self.parts, key=self.parts.__getitem__)
        fewer = "fewer environments (--num-envs), shorter unrolls (--unroll-length)"
        samples = isinstance(load_algorithm(config.algorithm.name).cadence(config), ReplayCadence)
        batch = _smaller_update(config) if samples else fewer
        advice = {
            "replay": "Use a smaller --replay-size, or --replay-on host for main memory.",
            "unrolls": advise(config, {"inference": "actor-cpu"}, or_else=fewer),
            "batch": f"Use {batch}, or --device cpu.",
            "evaluation": f"Use {fewer}, or --device cpu.",
            "activations": f"Use {_smaller_update(config)}, or --device cpu.",
            "parameters": "Use a smaller network (--model.hidden), or --device cpu.",
        }
        others = "End other programs on it (`nvidia-smi` lists them), or use another --device."
        return advice.get(largest, others)


def check_groups_fit(plan: RunPlan, num_learners: int) -> None:
    """Raise UsageError if several groups, which share a GPU, do not fit on it together."""
    if plan.device == "cpu" or (gpu := _find_gpu(plan.device)) is None:
        return
    each = sum(plan.gpu_bytes.values())
    if num_learners * each > SAFE_SHARE * gpu.free_bytes:
        raise UsageError(
            f"The run has {num_learners} learners: each takes {mib(each)} MiB on {plan.device} "
            f"({gpu.name}), {mib(num_learners * each)} MiB in all. {mib(gpu.free_bytes)} MiB are "
            f"free there, and a run may take {to_percent(SAFE_SHARE)} of that. Use fewer groups."
        )


def _find_gpu(device: str) -> Gpu | None:
    """Return None if the driver does not list it."""
    gpus, index = list_gpus(), int(device.partition(":")[2])
    return gpus[index] if index < len(gpus) else None


def _smaller_update(config: RunConfig) -> str:
    """Return the setting that makes an update smaller, of those that the algorithm has."""
    ways = {
        "minibatch_size": "a smaller --minibatch-size",
        "batch_size": "a smaller --batch-size",
        "minibatches": "more --minibatches",
    }
    known = type(config.algorithm).model_fields
    found = [words for name, words in ways.items() if name in known]
    return " or ".join((*found, "fewer environments (--num-envs)"))


def estimate_gpu_memory(
    run: Run, slots: Slots, places: Places, num_actors: int
) -> GpuMemory | None:
    """Return None for a run on the CPU."""
    if places.device == "cpu":
        return None
    others = _acting_processes(places, num_actors)
    network = FLOAT_BYTES * run.num_parameters
    activations, evaluation = _layer_bytes(run)
    replay = slots.replay
    on_gpu = 0 if replay is None or replay.has_observations else replay.observation_bytes
    return GpuMemory(
        context=CONTEXT_BYTES * (1 + others),
        parameters=run.trained_bytes + others * network,
        batch=_batch_bytes(run.cadence, slots),
        activations=activations,
        evaluation=evaluation,
        unrolls=slots.num_slots * _staying_bytes(slots, places),
        replay=on_gpu,
    )


def _acting_processes(places: Places, num_actors: int) -> int:
    """Count the processes that infer on the GPU, beside the learner's."""
    if places.inference != "actor-gpu":
        return 0
    return -(-num_actors // places.actors_per_worker(num_actors))


def _update_steps(cadence: Cadence) -> int:
    """Return the environment steps of one update."""
    match cadence:
        case QueueCadence():
            return cadence.steps_per_update or cadence.steps_per_version
        case ReplayCadence():
            return cadence.trained_steps_per_version // cadence.num_updates
        case Gather():
            return cadence.steps_per_version


def _batch_bytes(cadence: Cadence, slots: Slots) -> int:
    if slots.replay is not None:
        item = slots.replay.item_bytes
        return item * (cadence.trained_steps_per_version + _update_steps(cadence))
    stack = sum(
        (field.history + 1) * math.prod(field.shape) * np.dtype(field.dtype).itemsize
        for field in slots.layout.fields
        if is_observation(field.name)
    )
    uploaded = slots.per_version * slots.layout.slot_bytes
    rows = BATCH_COPIES * cadence.steps_per_version + _update_steps(cadence)
    return uploaded + stack * rows


def _layer_bytes(run: Run) -> tuple[int, int]:
    """Return the results of layers in an update, and in the evaluation of the batch. An update is a
    CUDA graph, whose memory nothing else uses."""
    config, cadence = run.config, run.cadence
    if config.model.factory is not None:
        return 0, 0
    size, asked = run.learner_size, config.model.precision
    is_float32 = asked == "float32" or (asked == "auto" and size.keeps_float32)
    item = FLOAT_BYTES if is_float32 else FLOAT_BYTES // 2
    trained = evaluated = 0
    for leaf in filter(is_image, observation_leaves(run.probe.spaces.observation)):
        image, *layers = torso_outputs(leaf.shape, config.model.torso)
        trained += KEPT_OF_AN_IMAGE * image + KEPT_OF_A_LAYER * sum(layers)
        evaluated += KEPT_OF_AN_IMAGE * image + 2 * max(layers)
    has_epochs = isinstance(cadence, QueueCadence) and (
        cadence.trained_steps_per_version > cadence.steps_per_version
    )
    whole = cadence.steps_per_version if has_epochs else 0
    return item * _update_steps(cadence) * size.num_passes * trained, item * whole * evaluated


def _staying_bytes(slots: Slots, places: Places) -> int:
    """Return the bytes of a slot that stay on the GPU: frames that are stored one by one where the
    learner's process infers, unless replay copies them, and all observations where it serves other
    processes."""
    is_read_there = places.inference == "learner" and slots.replay is None
    if not is_read_there and places.inference != "served":
        return 0
    layout = slots.layout
    names = {field.name for field in layout.fields}
    return sum(
        math.prod(layout.shape(field)) * np.dtype(field.dtype).itemsize
        for field in layout.fields
        if is_observation(field.name)
        and (places.inference == "served" or AGE + field.name[len(OBS) :] in names)
    )
