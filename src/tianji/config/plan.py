"""RunPlan: everything that is derived from a RunConfig on this machine.

It is saved with the run as plan.json, and every process of the run starts from it.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from tianji.config.schema import Record

Bottleneck = Literal["sampling", "training", "communication", "processors"]
Inference: TypeAlias = Literal["actor-cpu", "actor-gpu", "learner", "served"]
"""The places where policies can choose actions."""
Balance: TypeAlias = Literal["paced", "free", "blocking", "dropping", "limiter"]
"""The ways to keep actors and learner in step (buffer/)."""
IN_STEP: tuple[Balance, ...] = ("paced", "blocking", "limiter")
"""Those with which one side waits for the other, so that both are equally fast in the end. With the
others actors run ahead of the learner, or the learner ahead of them."""


class Prediction(Record):
    """The predicted rates of a plan, in environment steps per second."""

    produced: float
    received: float
    trained: float
    """Trained steps; each epoch or sampled step counts."""
    lag_versions: float
    bottleneck: Bottleneck


def has_costs(device: str, inference: Inference) -> bool:
    """Return whether the planner can measure what each part of a run costs: it measures actors that
    infer by themselves, and learners on the CPU."""
    return device == "cpu" and inference != "served"


class LimiterPlan(Record):
    """Reverb's rate limiter (balance/samples_per_insert.py) for one run. Items are environment
    steps with a replay store, and unrolls with a queue."""

    samples_per_insert: float
    min_size: int
    min_diff: float
    max_diff: float
    items_per_batch: int
    items_per_unroll: int
    is_replay: bool
    """Items stay until newer ones push them out; else they leave when they are sampled."""


class RunPlan(Record):
    """The roles of a run, their cores and threads, and the memory they take."""

    num_actors: int
    envs_per_actor: int
    learner_threads: int
    """Torch threads of the learner's process."""
    actor_threads: int = 1
    """Torch threads of each actor's process."""
    actors_per_worker: int = 1
    """Actors that take turns in one process: one infers while the environments of others step."""
    emulator_threads: int = 1
    """Threads of each actor's emulator."""
    device: str = "cpu"
    """Where the learner trains: `cpu` or `cuda:N`."""
    inference: Inference = "actor-cpu"
    """Where policies choose actions."""
    num_cores: int = 1
    """Cores that the run may use; of one group where there are several, on all of its hosts."""
    shares_cores: bool = False
    """More workers and threads than cores, so that actors may be parked."""
    actor_places: tuple[int, ...] = ()
    """The host of each actor, counted from that of the learner (0); empty: all are there."""
    cores: dict[str, tuple[int, ...]]
    """Cores that each worker is pinned to; empty: not pinned."""
    unroll_length: int
    lookahead: int
    num_rows: int
    """Rows of a slot: unroll_length + lookahead - 1."""
    keeps_final: bool
    """Final observations have fields of their own (see envs/interface.py)."""
    layout: dict[str, Any]
    """The fields of a slot (channels/layout.py)."""
    spaces: dict[str, str] = {}
    """What kinds of values `observation` and `action` are, in words; empty where an earlier TianJi
    wrote the plan."""
    slot_bytes: int
    num_slots: int
    replay_rows: int
    """Rows of every actor's unrolls that the replay store keeps; 0 for a queue."""
    replay_on_gpu: bool = False
    """The observations of the replay store lie on the learner's GPU."""
    unrolls_per_version: int
    warmup_unrolls: int
    lag_target: int
    """Lag of an unroll in steady state, in versions: what pacing maintains, or what a full queue of
    fixed size makes it."""
    max_lag: int
    balance: Balance = "paced"
    """`paced` keeps actors and learner in a ratio; with `free`, neither ever waits; with `blocking`
    and `dropping`, a queue of fixed size is between them; with `limiter`, Reverb's rate limiter."""
    queue_size: int = 0
    """Unrolls that this queue can hold; 0 without one."""
    limiter: LimiterPlan | None = None
    """The rate limiter; None without one."""
    ratio: float
    shared_memory_bytes: int
    """Slots, replay, lanes and control."""
    gpu_bytes: dict[str, int] = {}
    """Memory on the GPU by part (planning/resolve/gpu_memory.py); empty for a run on the CPU."""
    policy_board_bytes: int | None = None
    """Shared memory for the published policy; None until the network is built."""
    sum_boards_bytes: int | None = None
    """Shared memory for the actors' sums of gradients; None if none are gathered."""
    source: Literal["rule", "measured"] = "rule"
    """How the cores were divided: by a simple rule or from measurements."""
    prediction: Prediction | None = None
    """None if the plan was not measured."""
    notes: tuple[str, ...]
    """The derived values and the reasons for them, in words."""

    @property
    def target_ratio(self) -> float | None:
        """Return the items to be taken per item put; None where that is left to the speeds."""
        if self.limiter is not None:
            return self.limiter.samples_per_insert
        return None if self.balance == "free" else self.ratio

    @property
    def has_costs(self) -> bool:
        return has_costs(self.device, self.inference)

    @property
    def acting_device(self) -> str:
        """Return where actors infer; those that are served have nothing on a GPU."""
        return "cpu" if self.inference in ("actor-cpu", "served") else self.device

    @property
    def num_hosts(self) -> int:
        """Return on how many hosts the group lives."""
        return 1 + max(self.actor_places, default=0)

    def host_of(self, actor: int) -> int:
        """Return the host of an actor, counted from that of the learner."""
        return self.actor_places[actor] if self.actor_places else 0

    @property
    def steps_per_unroll(self) -> int:
        return self.unroll_length * self.envs_per_actor
