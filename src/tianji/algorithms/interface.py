"""An algorithm: a record of functions, without anything about processes.

algorithm = load_algorithm("ppo")
model  = algorithm.build_model(spaces, config)            # in actors, learner, evaluator alike
acting = algorithm.build_acting(model, spaces, config)    # in actors
update = algorithm.build_update(model, spaces, config)    # in the learner
for minibatch in update.minibatches(batch, progress):     # one optimiser step each
    minibatch.gradient()
    minibatch.step()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias

from tianji.types import Array, Batch, Field, Unroll

if TYPE_CHECKING:
    import numpy as np
    import torch

    from tianji.config.run import RunConfig
    from tianji.config.schema import AlgorithmConfig
    from tianji.envs.interface import Spaces
    from tianji.models.moments import Statistics


ValueFunction: TypeAlias = Callable[..., Array]
"""Observations [N, ...] by leaf name, and the states [N, S] of a memory if there is one, to values
[N]."""
Rule: TypeAlias = Literal["first", "harmonic", "barrier", "every"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCadence:
    """Every unroll is used once, or once on average. All counts are per version.

    PPO, 16 environments, unrolls of 32, 10 epochs:
        QueueCadence(unroll_length=32, steps_per_version=512, trained_steps_per_version=5120)
    """

    unroll_length: int
    steps_per_version: int
    """Environment steps the learner receives for every version; a multiple of one round."""
    trained_steps_per_version: int
    """Environment steps of all updates of a version: every epoch counts."""
    pool_batches: int = 1
    """A batch is drawn from the unrolls of so many; 1 takes each as it comes."""
    steps_per_update: int = 0
    """Environment steps of one update, at most; 0: those of the whole batch."""
    lookahead: ClassVar[int] = 1
    warmup_steps: ClassVar[int] = 0
    ratio: ClassVar[float] = 1.0


@dataclass(frozen=True, slots=True)
class Proportional:
    """Items are drawn with probability p_i^alpha / sum p^alpha, and weighed by (1 / P_i)^beta
    (Schaul et al. 2016). p_i: the absolute TD error that the learner gives back, plus epsilon."""

    alpha: float = 0.6
    beta: float = 0.4
    epsilon: float = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayCadence:
    """Transitions are sampled from the newest steps. All counts are per version.

    DQN, 16 environments, unrolls of 4, 8 updates of 128:
        ReplayCadence(unroll_length=4, steps_per_version=64, trained_steps_per_version=1024,
                      capacity_steps=100_000, num_updates=8, warmup_steps=1000)
    """

    unroll_length: int
    steps_per_version: int
    """Environment steps the learner receives for every version; a multiple of one round."""
    trained_steps_per_version: int
    """Sampled steps of all updates of a version."""
    capacity_steps: int
    """Environment steps kept."""
    num_updates: int
    """Minibatches in a batch."""
    warmup_steps: int = 0
    """Environment steps in the store before the first batch is taken."""
    lookahead: int = 1
    """Rows that an item looks ahead."""
    n_step: int | None = None
    """Rewards of a return, where that is not all that an item looks ahead."""
    memory: Literal["host", "gpu", "auto"] = "host"
    """Memory of the observations; auto: the learner's GPU, if there is one and they fit."""
    sampling: Proportional | None = None
    """How items are drawn; None: all alike."""

    @property
    def ratio(self) -> float:
        """Return the steps sampled per step put."""
        return self.trained_steps_per_version / self.steps_per_version


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnReplay:
    """Each actor keeps its newest steps in its own process, and computes every gradient from
    transitions that it samples there, all with the same chance.

    Gorila, 4 actors with 4 environments each, gradients of 32 transitions:
        OwnReplay(capacity_steps=100_000, warmup_steps=1000, batch_size=32, n_step=1)
    """

    capacity_steps: int
    """Environment steps kept by all actors together; each keeps its share."""
    warmup_steps: int
    """Environment steps of all actors together before they compute gradients; each actor waits for
    its share."""
    batch_size: int
    """Transitions of one gradient."""
    n_step: int = 1
    """Rewards of a return."""


@dataclass(frozen=True, slots=True)
class Gather:
    """Actors add up gradients, and a version takes their sums when they are enough.

    first:    so many, from any actors (Rennala)
    harmonic: at least one from every actor, and their harmonic count is enough (Malenia)
    barrier:  one from every actor (synchronous)
    every:    each one makes a version (AFedPG, A3C, Gorila)

    An unroll is a token for a gradient that its actor has added to a sum of its own.
    """

    rule: Rule
    num_gradients: int = 1
    """M; `barrier` and `every` have none."""
    first_num_gradients: int = 1
    """M_init, of the first version."""
    realisation: Literal["server", "all-reduce"] = "server"
    absent_after_s: float | None = None
    """Continue without an actor that has delivered nothing for so long; None waits for it."""
    unroll_length: int = 1
    """Rows of one gradient, at most."""
    steps_per_version: int = 1
    """Environment steps of the gradients that a version counts, at most."""
    fresh: bool = True
    """The environments are reset for every gradient; otherwise their episodes go on from one
    gradient to the next."""
    max_lag: int | None = None
    """Versions by which a gradient may be behind, where old ones count at all (`every`); older ones
    are discarded. None: any number."""
    memory: OwnReplay | None = None
    """What gradients are computed from; None: the rows that the actor has just made."""
    note: str = ""
    """What people must know when they read about the rounds."""
    ratio: ClassVar[float] = 1.0

    @property
    def lookahead(self) -> int:
        """Return the rows that an item looks ahead."""
        return 1 if self.memory is None else self.memory.n_step

    @property
    def warmup_steps(self) -> int:
        """Return the environment steps of all actors before the first gradient."""
        return 0 if self.memory is None else self.memory.warmup_steps

    @property
    def trained_steps_per_version(self) -> int:
        """Return the environment steps that a version is trained on, or the sampled ones."""
        if self.memory is None:
            return self.steps_per_version
        return self.num_gradients * self.memory.batch_size


Cadence: TypeAlias = QueueCadence | ReplayCadence | Gather
"""How an algorithm's serial form turns steps into versions: one record for each kind of store."""


class Acting(Protocol):
    """The actor's side of a policy: observations to actions, in place, without autograd.

    acting.begin(rng, unroll, first_row, steps_before)
    for t in ...:
        world.step(acting.act(unroll, t), unroll, t)
    acting.finish(unroll, first_row)

    It may have a method take_environments(first): the actor tells it the number of its first
    environment, counted over all actors of the run, before anything else.

    A policy with a memory has an attribute state_size, and two fields per="unroll" (types.py):
    `memory`, the states that the actor gives it for the first row, and `next_memory`, where it
    keeps the states after the newest row. Its greedy() takes the states too, and updates them in
    place: greedy(obs, state_NS). PolicyState (algorithms/memory.py) holds them.

    act() is submit() and collect() at once. Whoever calls them apart can do something else while
    inference runs, such as the same for another half of the environments.
    """

    def begin(
        self, rng: np.random.Generator, unroll: Unroll, first_row: int, steps_before: int
    ) -> None:
        """Prepare for one unroll: draw its noise at once, set schedules.

        steps_before: the place in the run, in environment steps of all actors before this unroll.
        It is derived from the round, never from arrival: schedules are the same in every engine.
        """

    def submit(self, unroll: Unroll, t: int) -> None:
        """Start inference on row t of the observations."""

    def collect(self, unroll: Unroll, t: int) -> Array:
        """Wait for that inference, write action row t (and own fields), return the actions."""

    def act(self, unroll: Unroll, t: int) -> Array:
        """Submit and collect row t."""

    def finish(self, unroll: Unroll, first_row: int) -> None:
        """Fill what is cheaper for the whole unroll at once, such as log-probabilities."""

    def greedy(self, obs: Mapping[str, Array]) -> Array:
        """Return the actions that evaluation uses, for a batch of observations by leaf name."""


class Estimator(Protocol):
    """Computes an actor's gradients at one point; their sum is its contribution to a version.

    estimator.begin(version)                     # the model is at the point of a version
    if estimator.is_complete(unroll, t): ...     # asked after every row t
    estimator.add(unroll, num_rows)              # one gradient, of the rows before num_rows
    contribution = estimator.sum_P, estimator.count

    Where actors train on memories of their own (Gather.memory), add() gets sampled transitions, as
    replay batches name them, in place of an unroll.
    """

    @property
    def sum_P(self) -> Array:
        """Return the sum, float32, as long as the model's flat parameters."""

    @property
    def count(self) -> int:
        """Return the number of gradients in it."""

    def look_ahead(self) -> None:
        """Move the model, whose policy was just read, to the point that gradients are taken at."""

    def begin(self, version: int) -> None:
        """Start a new sum: the model has moved to this version."""

    def load(self, sum_P: Array, count: int) -> None:
        """Continue from the sum that an actor which died has left at this version."""

    def is_complete(self, unroll: Unroll, t: int) -> bool:
        """Return whether rows up to and including t complete the gradient; the last always does."""

    def add(self, unroll: Unroll, num_rows: int) -> None: ...


class Minibatch(NamedTuple):
    """One optimiser step in two calls, so that a reduction can stand between them."""

    gradient: Callable[[], torch.Tensor]
    """Compute the gradient, and return it as one flat vector."""
    step: Callable[[], None]
    """Move the parameters by that vector, with whatever was written into it since."""
    num_steps: int = 0
    """Environment steps of this rank in it, where several ranks make one update together."""


class Update(Protocol):
    """The learner's side."""

    def minibatches(self, batch: Batch, progress: float) -> Iterator[Minibatch]:
        """Yield the minibatches of a batch; each is stepped before the next is asked for.

        progress: the share of max_env_steps that is done, for schedules.
        """

    def metrics(self) -> Mapping[str, float]:
        """Return the metrics of the minibatches of the last batch so far; empty without any."""

    def minibatch_steps(self, batch: Batch) -> int:
        """Return the environment steps that one optimiser step of this batch trains on."""

    def state(self) -> dict[str, torch.Tensor]:
        """Return fresh copies of the optimiser's, targets' and statistics' state, which is not in
        the model's own state_dict."""

    def load_state(self, state: Mapping[str, torch.Tensor]) -> None: ...


def statistics_of(update: Update) -> list[Statistics]:
    """Return the running statistics of an update, which groups mix. Updates that have some have a
    method of that name."""
    found: Callable[[], list[Statistics]] = getattr(update, "statistics", list)
    return found()


@dataclass(frozen=True, slots=True)
class LearnerSize:
    """What a learner has and computes beside the network that it publishes, for the budget of
    memory.

    SAC: LearnerSize(num_parameters=144_000, num_passes=3, keeps_float32=True)
    """

    num_parameters: int = 0
    """Parameters of networks that are not published."""
    num_passes: int = 1
    """Passes over the observations of an update that are differentiated together."""
    keeps_float32: bool = False
    """It computes in float32 on a GPU too, unless the run asks for less."""


def only_published(spaces: Spaces, config: RunConfig) -> LearnerSize:
    """Return the size of a learner that trains the published network alone."""
    return LearnerSize()


@dataclass(frozen=True)
class Algorithm:
    """One algorithm."""

    name: str
    config: type[AlgorithmConfig]
    """Its config record, found under `algorithm` in RunConfig."""
    cadence: Callable[[RunConfig], Cadence]
    check: Callable[[Spaces, RunConfig], None]
    """Raise UsageError where the algorithm cannot work with these spaces."""
    fields: Callable[[Spaces, RunConfig], tuple[Field, ...]]
    """`action` and what else the acting side writes; per="unroll" for a memory that each
    environment starts the unroll with."""
    build_model: Callable[[Spaces, RunConfig], torch.nn.Module]
    build_acting: Callable[[torch.nn.Module, Spaces, RunConfig], Acting]
    build_update: Callable[[torch.nn.Module, Spaces, RunConfig], Update]
    export: Callable[[torch.nn.Module, Spaces, RunConfig], Any]
    """An nn.Module from observation tensors (one per leaf) to the greedy action, for ONNX."""
    build_value: (
        Callable[[torch.nn.Module, Spaces, RunConfig, Mapping[str, torch.Tensor]], ValueFunction]
        | None
    ) = None
    """The values that a model has learned, in the scale of the environment's rewards; None where
    it learns none. The mapping is Update.state() where rewards were normalised, else empty."""
    build_estimator: Callable[[torch.nn.Module, Spaces, RunConfig], Estimator] | None = None
    """In actors, where items are gradients (cadence: Gather)."""
    adds_gradients: bool = False
    """Its update can join those of other learners (channels/peers/interface.py, Joins): `combine:
    gradients` works with it."""
    not_mixed: str = ""
    """Why groups cannot mix what they publish (`combine: average` and `gossip`), as a sentence; ""
    where they can."""
    remembers: bool = False
    """Its policies can have a memory (model.memory)."""
    learner_size: Callable[[Spaces, RunConfig], LearnerSize] = only_published
