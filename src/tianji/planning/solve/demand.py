"""What a run asks of a machine: its numbers, and the main memory that it takes, part by part.

`planning/resolve/` derives the numbers from the config.

Shared memory counts as main memory: it lies in memfds, which count against the limit of the control
group and not against the size of /dev/shm. Libraries that processes share count once: each process
has its part of them. GPU memory is counted in `planning/resolve/gpu_memory.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tianji.errors import UsageError
from tianji.wording import to_percent

SAFE_MEMORY_SHARE = 0.8
SUPERVISOR_BYTES = 80 << 20  # resident, with gymnasium and rich imported and without torch
SMALLEST_SHOWN = 1 << 20  # smaller parts are left out of the sum in a message


@dataclass(frozen=True, slots=True)
class SharedBytes:
    """The shared memory of a run's experience, in bytes.

    in_flight: slots of unrolls that are being made, wait, or are trained on.
    replay: the steps that the replay store keeps.
    control: lanes, gauges and bells.
    messages: batches and states between a buffer and a learner in another worker.
    """

    in_flight: int
    replay: int
    control: int
    messages: int = 0

    @property
    def total(self) -> int:
        return self.in_flight + self.replay + self.control + self.messages


@dataclass(frozen=True, slots=True)
class RunMemory:
    """The memory of a run in bytes.

    actors: networks and environments of all actors, their processes if they have their own, and
        the process of a server on the CPU.
    policy: every copy of the published policy, and of sums of gradients.
    """

    num_actors: int
    actors: int
    learner: int
    policy: int
    shared: SharedBytes
    evaluator: int = 0
    supervisor: int = SUPERVISOR_BYTES

    @property
    def parts(self) -> dict[str, int]:
        return {
            "actors": self.actors,
            "learner": self.learner,
            "evaluator": self.evaluator,
            "supervisor": self.supervisor,
            "unrolls_in_flight": self.shared.in_flight,
            "replay": self.shared.replay,
            "control": self.shared.control,
            "messages": self.shared.messages,
            "policy": self.policy,
        }

    @property
    def total(self) -> int:
        return sum(self.parts.values())

    def fits(self, memory_bytes: int) -> bool:
        return self.total <= memory_bytes * SAFE_MEMORY_SHARE

    def refusal(self, memory_bytes: int) -> UsageError:
        """Return the error for a run that does not fit, with the sum of its parts."""
        terms = " + ".join(
            self._term(name, size) for name, size in self.parts.items() if size >= SMALLEST_SHOWN
        )
        usable = memory_bytes * SAFE_MEMORY_SHARE
        return UsageError(
            f"This run does not fit in memory: {terms} = {mib(self.total)} MiB of main memory "
            f"(shared memory included). {mib(memory_bytes)} MiB are free, and a run may take "
            f"{to_percent(SAFE_MEMORY_SHARE)} of that, {mib(usable)} MiB. {self._advice(usable)}"
        )

    def _term(self, name: str, size: int) -> str:
        if name == "actors" and self.num_actors > 1:
            return f"{self.num_actors} actors x {mib(size / self.num_actors)} MiB"
        return f"{name.replace('_', ' ')} {mib(size)} MiB"

    def _advice(self, usable: float) -> str:
        each = self.actors / self.num_actors
        most = int((usable - self.total + self.actors) / each) if each else 0
        if 0 < most < self.num_actors:
            return f"At most {most} such actors fit: use a smaller num_actors."
        return (
            "Use fewer environments (num_envs), a smaller replay_size, shorter unrolls or a "
            "smaller network."
        )


def mib(size: float) -> str:
    return f"{size / 2**20:,.0f}"


@dataclass(frozen=True, slots=True)
class Demand:
    """The numbers that do not depend on the shares of the machine, and the shares set by hand.

    trained_steps_per_version: every epoch, or every sampled step, counts.
    ratio: items taken per item put.
    staleness: P = B_s / N_s of the paper's equation 2: the steps of one batch divided by the steps
        that it is drawn from. 1 for a queue.
    shared: by number of actors; only numbers that divide the environments and a version evenly.
    policy_copies: copies of the published policy in shared memory.
    num_actors, learner_threads, actor_threads: None if the planner chooses.
    """

    num_envs: int
    unroll_length: int
    steps_per_version: int
    trained_steps_per_version: int
    ratio: float
    staleness: float
    lag_target: int
    max_lag: int
    shared: Mapping[int, SharedBytes]
    policy_copies: int
    num_actors: int | None = None
    learner_threads: int | None = None
    actor_threads: int | None = None
    has_evaluator: bool = False

    def unrolls_per_version(self, num_actors: int) -> int:
        steps_per_unroll = self.unroll_length * (self.num_envs // num_actors)
        return self.steps_per_version // steps_per_unroll
