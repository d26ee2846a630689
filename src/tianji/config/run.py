"""RunConfig: what the person asked for. Frozen; what follows from it is RunPlan (plan.py)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SerializeAsAny, field_validator, model_validator

from tianji.config.auto import check_chosen, without_auto
from tianji.config.defaults import with_defaults
from tianji.config.schema import (
    AlgorithmConfig,
    Auto,
    Count,
    Positive,
    Strict,
    TriedCount,
    load_algorithm_config,
)


class ModelConfig(Strict):
    """The network. Vectors go through an MLP, images through the Nature CNN first."""

    hidden: tuple[Count, ...] = (64, 64)
    """Widths of the hidden layers."""
    activation: Literal["tanh", "relu", "gelu", "elu"] = "tanh"
    """Non-linearity of the hidden layers."""
    factory: str | None = None
    """`module:name` of a function (observation_space, action_space) -> nn.Module of your own."""


class NormalizeConfig(Strict):
    """Running normalisation; only the learner updates the statistics, from the items it takes."""

    observations: bool = False
    """Centre and scale observations by their running mean and deviation."""
    rewards: bool = False
    """Scale rewards by the running deviation of the discounted return."""
    bound: Positive = 10.0
    """Normalised values are cut to this size."""


class CheckpointConfig(Strict):
    """What is saved, and how often."""

    period_s: Positive = 30.0
    """Seconds between checkpoints; a learner that dies goes back at most this far."""
    keep_last: Count = 3
    """Newest checkpoints kept, beside the best one."""
    replay: bool | Auto = "auto"
    """Save the replay store too; auto: when it is smaller than 256 MiB and fits on the disk."""


class EvaluateConfig(Strict):
    """Evaluation beside training."""

    period_s: float = Field(0.0, ge=0.0)
    """Seconds between evaluations beside training, with greedy actions; 0 is off."""
    episodes: Count = 10
    """Episodes of each evaluation."""
    cut_after_steps: Count = 27_000
    """Steps after which an episode that has not ended is cut, here and by `tianji eval`: otherwise,
    without a time limit, it might never end."""


class ObserveConfig(Strict):
    """What is shown and written about the run."""

    period_s: Positive = 0.5
    """Seconds between two lines of metrics."""
    tensorboard: bool = True
    """Write TensorBoard events."""
    display: Literal["auto", "live", "plain", "off"] = "auto"
    """Live table on a terminal, plain lines elsewhere."""
    trace: bool = False
    """Write a timeline of what every role did when, for Perfetto and `tianji figure tianji-1`."""


class PlanConfig(Strict):
    """How the machine is shared among the roles."""

    source: Literal["auto", "measure", "rule"] = "auto"
    """`measure`: profile this run on this machine first, and keep the profile for the next time;
    `rule`: share cores by a simple rule, at once; `auto`: a profile that was kept, else measure
    where the run is long enough to pay for it."""
    replan: bool = False
    """Change to a better plan at a checkpoint when the balance stays off; else only say so."""
    pin: bool = True
    """Pin workers to cores where each can have its own."""
    choose: tuple[str, ...] = ()
    """Settings of the algorithm that the planner chooses, starting from their values: those that
    are written as `auto`, which start from their defaults."""


class SuperviseConfig(Strict):
    """When a role counts as lost, and what is done about it."""

    heartbeat_timeout_s: Positive = 60.0
    """A role that is silent for longer counts as dead; must exceed the slowest environment step."""
    max_restarts: int = Field(5, ge=0)
    """Restarts of one role before the run gives up on it; work refunds them (an actor: one for each
    1,000 environment steps or 60 s; the learner: one for each checkpoint)."""
    backoff_s: Positive = 0.5
    """Wait before the second restart of a role; doubles each time."""


class TimesConfig(Strict):
    """Given times of the actors' gradients, for algorithms that gather gradients: the virtual
    engine computes with them, real processes wait as long. Without a law they are what they are.

    Actors are counted from i = 1 in the laws, as in the papers; d is the number of parameters.
    """

    law: Literal["none", "equal", "sqrt", "straggler", "random", "changing", "given"] = "none"
    """Units of time that actor i computes for one gradient. `equal`: 1; `sqrt`: sqrt(i);
    `straggler`: 1, the last one `slowest`; `random`: drawn anew for each gradient, of mean
    sqrt(i); `changing`: sqrt(i) forwards and backwards in turn; `given`: the list `compute`."""
    compute: tuple[Positive, ...] = ()
    """Of every actor, with the law `given`."""
    network: Literal["none", "equal", "sqrt", "sqrt-size", "given"] = "none"
    """Units of time that a message of actor i takes: 0, 1, sqrt(i), sqrt(i) d^(1/4), or the list
    `communicate`."""
    communicate: tuple[Annotated[float, Field(ge=0.0)], ...] = ()
    """Of every actor, with the network `given`."""
    slowest: Positive = 30.0
    """Of the `straggler`."""
    per: Literal["gradient", "step"] = "gradient"
    """What `compute` is the time of: a whole gradient, or one environment step of it."""
    unit_s: Positive = 1.0
    """Seconds of one unit."""


class RunConfig(Strict):
    """One training run.

    >>> RunConfig(env="CartPole-v1", algorithm={"name": "ppo", "gamma": 0.98}, seed=3)
    """

    run: str | None = None
    """Name of the run folder; made from environment, algorithm and seed when empty."""
    env: str = "CartPole-v1"
    """A Gymnasium id, or `module:factory` of a function that returns an environment."""
    env_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments for the environment."""
    envs: tuple[str, ...] = ()
    """One environment for each actor, in turn, in place of `env`: different tasks with the same
    spaces, for algorithms that gather gradients."""
    algorithm: SerializeAsAny[AlgorithmConfig]
    """The algorithm and its numbers."""
    model: ModelConfig = ModelConfig()
    normalize: NormalizeConfig = NormalizeConfig()
    engine: Literal["local", "inline", "virtual"] = "local"
    """`local`: processes on this machine; `inline`: serial, one process, bit-reproducible;
    `virtual`: asynchronous in simulated time, one process, bit-reproducible."""
    seed: int = Field(1, ge=0, lt=2**63)
    """Root of all random numbers."""
    num_envs: TriedCount = 8
    """Environments in all, over all actors. auto: the fewest that cost no speed."""
    num_actors: Count | Auto = "auto"
    """Actor processes; auto: as many as help, by how long the environment's steps take; one for
    each core where the actors compute the gradients."""
    learner_threads: Count | Auto = "auto"
    """Torch threads of the learner; auto: the cores that the actors leave, at most what helps."""
    actor_threads: Count | Auto = "auto"
    """Torch threads of each actor; auto: more than one only where inference gains by it."""
    max_lag: int = Field(1, ge=0)
    """Most versions an item may be behind when it is taken; 0 gives serial training."""
    target_return: float | None = None
    """Stop when the mean return of the last 100 finished episodes reaches this."""
    max_env_steps: Count = 1_000_000
    """Stop after this many environment steps; schedules run over it."""
    max_wall_s: Positive | None = None
    """Stop after this many seconds of training."""
    checkpoint: CheckpointConfig = CheckpointConfig()
    evaluate: EvaluateConfig = EvaluateConfig()
    observe: ObserveConfig = ObserveConfig()
    supervise: SuperviseConfig = SuperviseConfig()
    times: TimesConfig = TimesConfig()
    plan: PlanConfig = PlanConfig()

    @property
    def tasks(self) -> tuple[str, ...]:
        """The environments by name; actor i has the one at i modulo their number."""
        return self.envs or (self.env,)

    @property
    def env_name(self) -> str:
        """All of them, in few words."""
        first, *others = dict.fromkeys(self.tasks)
        more = f"{len(others)} others" if len(others) > 1 else "".join(others)
        return f"{first} + {more}" if more else first

    @model_validator(mode="before")
    @classmethod
    def _fill_defaults(cls, value: Any) -> Any:
        """Later code sees only values: `auto` becomes the default and is noted in plan.choose."""
        return with_defaults(without_auto(cls, value)) if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _check_chosen(self) -> RunConfig:
        check_chosen(type(self), type(self.algorithm), self.plan.choose)
        return self

    @field_validator("algorithm", mode="before")
    @classmethod
    def _load_algorithm_config(cls, value: Any) -> Any:
        """Pick the config class by the algorithm's name, so that algorithms stay an open set."""
        if isinstance(value, str):
            value = {"name": value}
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            return load_algorithm_config(value["name"]).model_validate(value)
        return value

    @field_validator("env_kwargs")
    @classmethod
    def _refuse_objects(cls, value: dict[str, Any]) -> dict[str, Any]:
        """Keywords are saved with the run and sent to other processes: plain data only."""
        return {str(key): _plain(entry, str(key)) for key, entry in value.items()}


def _plain(value: Any, key: str) -> Any:
    """The same data without tuples, which no file format keeps."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(entry, key) for entry in value]
    if isinstance(value, dict):
        return {str(name): _plain(entry, key) for name, entry in value.items()}
    raise ValueError(
        f"{key} is a {type(value).__name__}; numbers, text, true, false, none, and lists and "
        "mappings of them can be saved with the run. Build the rest in a `module:factory`."
    )
