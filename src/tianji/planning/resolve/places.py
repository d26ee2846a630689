"""Choose where a run trains and infers: on the CPU or a GPU, and in which process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tianji.algorithms.interface import Gather
from tianji.algorithms.registry import load_algorithm
from tianji.config.advice import advise
from tianji.config.machine import Machine
from tianji.config.plan import Inference, has_costs
from tianji.config.run import RunConfig
from tianji.config.settings import ALGORITHM_NAME
from tianji.devices.find import find_device
from tianji.devices.nvml import list_gpus
from tianji.envs.spaces import observation_leaves
from tianji.errors import UsageError
from tianji.models.sizes import is_image
from tianji.wording import to_percent

if TYPE_CHECKING:
    from tianji.envs.build import Probe

CORES_FOR_A_SERVER = 4
"""With fewer cores, one for the server alone costs more than it brings."""


@dataclass(frozen=True, slots=True)
class Places:
    """Places("cuda:0", "learner", emulator_threads=16, turns=None, reason="...")"""

    device: str
    inference: Inference
    emulator_threads: int
    is_together: bool
    """All actors take turns in one process; else each has its own."""
    reason: str
    trains_images_on_cpu: bool = False
    asked_per_worker: int | None = None
    """Actors that the person wants in one process."""

    def actors_per_worker(self, num_actors: int) -> int:
        """Return how many of this many actors take turns in one process."""
        return min(self.asked_per_worker or (num_actors if self.is_together else 1), num_actors)

    @property
    def has_costs(self) -> bool:
        return has_costs(self.device, self.inference)


def choose_places(config: RunConfig, machine: Machine, probe: Probe) -> Places:
    """Return where the run trains and infers; UsageError if what was asked cannot work."""
    cadence = load_algorithm(config.algorithm.name).cadence(config)
    if isinstance(cadence, Gather):
        return _on_the_cpu(config)
    has_images = any(is_image(leaf) for leaf in observation_leaves(probe.spaces.observation))
    device = find_device(config.device, is_worthwhile=has_images)
    inference, reason = _inference(config, machine, probe, device, has_images)
    if config.emulator_threads != "auto":
        threads = config.emulator_threads
    elif not probe.has_threads:
        threads = 1
    elif inference in ("actor-gpu", "learner"):
        threads = len(machine.cores)  # a group that waits for its actions leaves them to the other
    else:
        threads = config.actor_threads if isinstance(config.actor_threads, int) else 1
    on_cpu = has_images and device == "cpu"
    is_together = inference in ("actor-gpu", "learner") and probe.has_threads
    together = _asked_per_worker(config, inference)
    return Places(device, inference, threads, is_together, reason, on_cpu, together)


def _asked_per_worker(config: RunConfig, inference: Inference) -> int | None:
    """Return the actors that the person wants in one process; UsageError if one would only wait
    while another works."""
    asked = config.plan.actors_per_worker
    if asked == "auto":
        return None
    if asked > 1 and inference in ("actor-cpu", "learner"):
        leave = "leave plan.actors_per_worker out"
        raise UsageError(
            f"plan.actors_per_worker is {asked}, and inference is '{inference}': actors take turns "
            "in a process where a GPU or a server infers for one while another steps. "
            f"{advise(config, *_served(config), _on('actor-gpu'), or_else=leave)}"
        )
    return asked


def _on_the_cpu(config: RunConfig) -> Places:
    """Return the places of an algorithm whose actors compute the gradients."""
    name, others = config.algorithm.name, [{ALGORITHM_NAME: other} for other in ("ppo", "dqn")]
    if config.device not in ("auto", "cpu"):
        raise UsageError(
            f"device is '{config.device}', and the actors of {name} compute gradients on the CPU. "
            f"{advise(config, {'device': 'cpu'}, *others)}"
        )
    if config.inference not in ("auto", "actor-cpu"):
        raise UsageError(
            f"inference is '{config.inference}', and the actors of {name} infer on the CPU. "
            f"{advise(config, _on('actor-cpu'), *others)}"
        )
    threads = 1 if config.emulator_threads == "auto" else config.emulator_threads
    return Places("cpu", "actor-cpu", threads, is_together=False, reason="")


def _on(inference: Inference) -> dict[str, str]:
    return {"inference": inference}


def _served(config: RunConfig) -> tuple[dict[str, str], ...]:
    """Return the change to a server, if there are processes that one could serve."""
    return (_on("served"),) if config.has_processes else ()


def _inference(
    config: RunConfig, machine: Machine, probe: Probe, device: str, has_images: bool
) -> tuple[Inference, str]:
    asked = config.inference
    if asked == "served" and not config.has_processes:
        raise UsageError(
            f"inference is 'served', which takes processes, and engine is '{config.engine}'. "
            f"{advise(config, {'engine': 'local'}, _on('actor-cpu'))}"
        )
    if asked in ("actor-gpu", "learner") and device == "cpu":
        on_cpu = _on("actor-cpu"), *_served(config)
        raise UsageError(
            f"inference is '{asked}', which needs a GPU, and this run is on the CPU. "
            f"{advise(config, *on_cpu, or_else='--device cuda on a machine with a GPU')}"
        )
    has_memory = config.model.memory != "none"
    if has_memory and asked in ("learner", "served"):
        raise UsageError(
            f"inference is '{asked}', and model.memory is '{config.model.memory}': its states are "
            "kept by the actors, which infer themselves. "
            f"{advise(config, _on('actor-cpu'), _on('actor-gpu'), {'model.memory': 'none'})}"
        )
    if asked != "auto":
        return asked, ""
    if device == "cpu" or not has_images:
        return "actor-cpu", ""
    if has_memory:
        inference: Inference = "actor-gpu"
    elif config.has_processes and len(machine.cores) >= CORES_FOR_A_SERVER:
        inference = "served"
    elif probe.has_threads and config.has_processes:
        inference = "learner"
    else:
        inference = "actor-gpu"
    return inference, describe(inference, device)


def describe(inference: Inference, device: str) -> str:
    """Say how a run works whose policies choose actions there."""
    match inference:
        case "served":
            return (
                f"A server in the learner's process infers on {device} for all actors: their "
                "processes only step environments, and observations cross to the GPU once."
                if device != "cpu"
                else "A server in a process of its own infers for all actors."
            )
        case "learner":
            return (
                f"Inference is in the learner's process on {device}: the emulator steps on "
                "threads, so that the environments of one actor step while another actor infers."
            )
        case "actor-gpu":
            return f"Actors infer on {device}: observations are images."
        case "actor-cpu":
            return "Each actor infers in its own process, on the CPU."


def places_to_try(config: RunConfig, machine: Machine, probe: Probe) -> tuple[Inference, ...]:
    """Return the places of inference that make sense for a run of the local engine: the one that
    was asked for, or all that a run on a GPU may use."""
    found = choose_places(config, machine, probe)
    if config.inference != "auto" or found.device == "cpu":
        return (found.inference,)
    if config.model.memory != "none":
        return ("actor-gpu", "actor-cpu")
    threads: tuple[Inference, ...] = ("learner",) if probe.has_threads else ()
    return ("served", *threads, "actor-gpu", "actor-cpu")


SAFE_GPU_SHARE = 0.8
"""Share of the free memory of a GPU that a replay store may take."""


def fits_gpu_replay(config: RunConfig, device: str, nbytes: int) -> bool:
    """Return whether a replay store of this size can be on the learner's GPU."""
    if device == "cpu" or config.plan.buffer_worker != "learner":
        return False
    return nbytes <= SAFE_GPU_SHARE * _free_bytes(device)


def _free_bytes(device: str) -> int:
    return list_gpus()[int(device.partition(":")[2])].free_bytes


def check_gpu_replay(config: RunConfig, device: str, nbytes: int) -> None:
    """Raise UsageError if a replay store of this size cannot be on the learner's GPU."""
    advice = "Use a smaller replay_size, or --replay-on host for main memory."
    if config.plan.buffer_worker != "learner":
        raise UsageError(
            "replay_on is 'gpu', and plan.buffer_worker gives the buffer a process of its own. Use "
            "--replay-on host, or leave the buffer in the learner's process."
        )
    if device == "cpu":
        raise UsageError(f"replay_on is 'gpu', and this run is on the CPU. {advice}")
    free = _free_bytes(device)
    if nbytes > SAFE_GPU_SHARE * free:
        raise UsageError(
            f"The replay store does not fit on {device}: its observations take "
            f"{nbytes / 2**30:,.1f} GiB. {free / 2**30:,.1f} GiB are free there, and it may take "
            f"{to_percent(SAFE_GPU_SHARE)} of that. {advice}"
        )
