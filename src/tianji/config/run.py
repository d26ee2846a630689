"""RunConfig: the settings of a run. The values derived from them are in RunPlan (plan.py)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, SerializeAsAny, field_validator, model_validator

from tianji.config.plan import Balance
from tianji.config.schema import (
    AlgorithmConfig,
    Auto,
    Count,
    Positive,
    Strict,
    TriedCount,
    check_chosen,
    fill,
    load_algorithm_config,
)
from tianji.wording import kind_of

Combine: TypeAlias = Literal["gradients", "average", "gossip"]
SEED_LIMIT = 2**63
"""Seeds are below this."""


class ModelConfig(Strict):
    """The network. Vectors go through an MLP, images through the Nature CNN first."""

    hidden: tuple[Count, ...] | Auto = "auto"
    """Widths of the hidden layers. auto: 64, 64; none behind convolutions."""
    torso: Literal["nature", "impala"] = "nature"
    """Convolutions for images: three layers (Mnih et al. 2015), or the residual network of IMPALA
    (Espeholt et al. 2018)."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of the network's products; parameters stay float32. auto: bfloat16 on a GPU, and in
    actors on a CPU that has instructions for it, where images go through convolutions."""
    activation: Literal["tanh", "relu", "gelu", "elu"] = "tanh"
    """Non-linearity of the hidden layers."""
    memory: Literal["none", "gru", "lstm"] = "none"
    """A memory behind the encoder, for PPO and IMPALA on environments whose observations do not
    tell everything: a GRU learns faster, an LSTM may remember more."""
    memory_size: Count | Auto = "auto"
    """Width of the memory. auto: that of the last hidden layer, or 64 if there is none."""
    factory: str | None = None
    """`module:name` of a function (observation_space, action_space) -> nn.Module of your own."""


class NormalizeConfig(Strict):
    """Running normalisation; only the learner updates the statistics, from the items it takes."""

    observations: bool = False
    """Shift and scale observations by their running mean and standard deviation."""
    rewards: bool = False
    """Scale rewards by the running standard deviation of the discounted return."""
    bound: Positive = 10.0
    """Clip normalised values to [-bound, bound]."""
    clip_rewards: Positive | Auto | None = "auto"
    """Clip rewards to [-x, x] for training; returns are not clipped. auto: 1 for Atari games."""


class CheckpointConfig(Strict):
    """What is saved, and how often."""

    period_s: Positive = 30.0
    """Seconds between checkpoints; a learner that dies loses at most this much."""
    keep_last: Count = 3
    """Number of newest checkpoints to keep, in addition to the best one."""
    replay: bool | Auto = "auto"
    """Save the replay store in every checkpoint; auto: if it is smaller than 256 MiB and fits on
    the disk."""
    save_replay: bool = False
    """Save the replay store when the run is stopped, whatever its size. Otherwise a resume fills a
    large one again."""


class EvaluateConfig(Strict):
    """Evaluation beside training."""

    period_s: float = Field(0.0, ge=0.0)
    """Seconds between evaluations with greedy actions during training; 0: no evaluations."""
    episodes: Count = 10
    """Episodes in each evaluation."""
    cut_after_steps: Count = 27_000
    """Steps after which an episode that has not ended is cut, here and by `tianji eval`; without a
    time limit it might never end."""


class ObserveConfig(Strict):
    """What is shown and written about the run."""

    period_s: Positive = 0.5
    """Seconds between two lines of metrics."""
    tensorboard: bool = True
    """Write TensorBoard events."""
    display: Literal["auto", "live", "plain", "off"] = "auto"
    """auto: a live table on a terminal, plain lines elsewhere."""
    trace: bool = False
    """Write a timeline of every role, for Perfetto and `tianji figure tianji-1`."""


class PlanConfig(Strict):
    """How the machine is shared among the roles."""

    source: Literal["auto", "measure", "rule"] = "auto"
    """`measure`: first measure this run on this machine, and save the profile for later runs;
    `rule`: share cores by a simple rule, without measuring; `auto`: use a saved profile, else
    measure if the run is long enough. On a GPU, `auto` never measures by itself."""
    replan: bool = False
    """Change to a better plan at a checkpoint when the run stays slower than planned; off: only
    report it."""
    pin: bool = True
    """Pin each worker to cores of its own, if there are enough."""
    buffer_worker: Literal["learner", "buffer"] = "learner"
    """Worker that the buffer lives in: the learner's, or one of its own, for a buffer whose work
    would delay the updates. Other engines than `local` have no workers."""
    actors_per_worker: Count | Auto = "auto"
    """Actors that take turns in one process: one steps its environments while a GPU or a server
    infers for another. auto: all, if they infer on a GPU and their environments step on threads;
    else one."""
    choose: tuple[str, ...] = ()
    """Settings of the algorithm that the planner chooses, starting from their values. Settings
    written as `auto` are added, and start from their defaults."""


class SuperviseConfig(Strict):
    """When a role counts as lost, and what is done about it."""

    heartbeat_timeout_s: Positive = 60.0
    """Seconds without a sign of life after which a role is restarted; must be longer than the
    slowest environment step."""
    max_restarts: int = Field(5, ge=0)
    """Most restarts of one role; then the run gives up on it. Work refunds restarts: one for each
    1,000 environment steps or 60 s of an actor, and one for each checkpoint of the learner."""
    backoff_s: Positive = 0.5
    """Seconds to wait before the second restart of a role; doubles each time."""


class LimiterConfig(Strict):
    """Reverb's rate limiter, for `balance: limiter`. Items are environment steps with a replay
    store, and unrolls with a queue."""

    samples_per_insert: Positive | Auto = "auto"
    """Items sampled for each item inserted; auto: the ratio of the algorithm."""
    min_size: Count | Auto = "auto"
    """Items in the store before the first batch; auto: those of the warm-up and of one version."""
    error_buffer: Positive | Auto = "auto"
    """Samples by which the learner may be ahead or behind before one side waits; more means fewer
    waits and more lag. auto: a tenth of samples_per_insert x min_size, or the least that is
    allowed."""
    bounds: tuple[float, ...] = ()
    """min_diff and max_diff, the window itself, in place of error_buffer."""


class TimesConfig(Strict):
    """Simulated times of the actors' gradients, for algorithms that gather gradients.

    The virtual engine computes with them, and real processes wait that long. Without a law, real
    times count. The laws count actors from i = 1, as in the papers; d is the number of parameters.
    """

    law: Literal["none", "equal", "sqrt", "straggler", "random", "changing", "given"] = "none"
    """Time units that actor i needs for one gradient. `equal`: 1; `sqrt`: sqrt(i); `straggler`: 1,
    but `slowest` for the last actor; `random`: random for each gradient, with mean sqrt(i);
    `changing`: sqrt(i), in the order of the actors and in reverse by turns; `given`: the list
    `compute`."""
    compute: tuple[Positive, ...] = ()
    """Time units of every actor, for the law `given`."""
    network: Literal["none", "equal", "sqrt", "sqrt-size", "given"] = "none"
    """Time units of a message of actor i: 0, 1, sqrt(i), sqrt(i) d^(1/4), or the list
    `communicate`."""
    communicate: tuple[Annotated[float, Field(ge=0.0)], ...] = ()
    """Time units of every actor's messages, for the network `given`."""
    slowest: Positive = 30.0
    """Time units of the slowest actor, for the law `straggler`."""
    per: Literal["gradient", "step"] = "gradient"
    """What the law is the time of: a whole gradient, or one environment step."""
    unit_s: Positive = 1.0
    """Seconds of one unit."""


class RunConfig(Strict):
    """One training run.

    >>> RunConfig(env="CartPole-v1", algorithm={"name": "ppo", "gamma": 0.98}, seed=3)
    """

    run: str | None = None
    """Name of the run folder; default: made from environment, algorithm and seed."""
    env: str = "CartPole-v1"
    """A Gymnasium id, `module:factory` of a function that returns an environment, or
    `pettingzoo:module` of a parallel environment, whose agents share the policy."""
    env_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments for the environment."""
    envs: tuple[str, ...] = ()
    """Several environments instead of `env`, given to the actors in turn: different tasks with the
    same spaces, for algorithms that gather gradients."""
    action_mask: str = "auto"
    """What says which actions are legal, if not all are: `info` is info["action_mask"] of every
    reset and step; other names are entries of a dictionary observation, which networks then do not
    see. none: all are legal. auto: an observation or an info called action_mask, if the environment
    has one."""
    algorithm: SerializeAsAny[AlgorithmConfig]
    """The algorithm and its numbers."""
    model: ModelConfig = ModelConfig()
    normalize: NormalizeConfig = NormalizeConfig()
    style: str = "tianji"
    """The architecture of the run: which roles there are, how they are connected, and who waits for
    whom. `tianji programs` lists them; each has settings of its own."""
    engine: Literal["local", "inline", "virtual", "ray", "mpi"] = "local"
    """`local`: processes on this machine; `ray`: on the hosts of a Ray cluster; `mpi`: on the hosts
    of an MPI job; `inline`: serial, one process, bit-reproducible; `virtual`: asynchronous in
    simulated time, one process, bit-reproducible."""
    ray_address: str = "auto"
    """Address of the Ray cluster, HOST:PORT. auto: one that runs on this machine, else a new one
    for this run."""
    seed: int = Field(1, ge=0, lt=SEED_LIMIT)
    """Seed of all random numbers."""
    num_groups: Count = 1
    """Groups of learners, buffers and actors that train one policy together. num_envs, num_actors
    and the settings of the algorithm describe one learner of a group; limits, targets and schedules
    the run."""
    learners_per_group: Count = 1
    """Learners of a group, each with a buffer and actors of its own. They add up their gradients
    before each step; `combine` is between the groups."""
    combine: Combine = "gradients"
    """How several groups become one policy. `average`: each takes the mean of all groups'
    parameters; `gossip`: each mixes with the group before it in a ring; nobody waits, unless
    combine_max_age says so. `gradients`: their gradients are added up before each step."""
    combine_every: Count = 8
    """Updates between two mixes, with `average` and `gossip`. Few cost time where updates are
    short; many make the groups drift apart."""
    combine_max_age: int = Field(0, ge=0)
    """Versions that a group makes without a new state of a peer before it waits for that peer, with
    `average` and `gossip`; 0: it never waits. Few let the fast groups wait for the slow ones."""
    actor_hosts: int = Field(0, ge=0)
    """Hosts that run actors of each group beside the host of its learner; engines ray and mpi."""
    num_envs: TriedCount = 8
    """Total number of environments of all actors, of one group. auto: the fewest at full speed.
    Where environments have many agents, each agent counts."""
    num_actors: Count | Auto = "auto"
    """Number of actor processes; auto: as many as help, by how long the environment's steps take;
    one for each core if the actors compute the gradients."""
    learner_threads: Count | Auto = "auto"
    """Torch threads of the learner; auto: the cores that the actors leave, as far as they help."""
    actor_threads: Count | Auto = "auto"
    """Torch threads of each actor; auto: more than one only if it makes inference faster."""
    emulator_threads: Count | Auto = "auto"
    """Threads of each actor's emulator, for environments that step on threads of their own."""
    device: str = "auto"
    """Where the learner trains: cpu, cuda, or cuda:N. auto: the first GPU, if there is one and
    observations are images."""
    inference: Literal["auto", "actor-cpu", "actor-gpu", "learner", "served"] = "auto"
    """Where policies choose actions: in each actor's process on the CPU or on the GPU, in the
    learner's process, which then holds the environments too, or by a server for all actors.
    `auto`: the fastest place that `tianji plan` has measured for such a run, else by rule."""
    max_lag: int = Field(1, ge=0)
    """Most versions by which experience may be behind the learner; 0: sampling and training take
    turns."""
    lag_target: Annotated[int, Field(ge=0)] | Auto = "auto"
    """Versions by which experience is behind the learner in the steady state; at most max_lag.
    auto: 1, which is what overlapping takes, or 0 if max_lag is 0."""
    balance: Balance = "paced"
    """`paced`: actors and learner keep the ratio of the algorithm, and experience the lag above;
    `free`: neither waits for the other, so that both depend on their speeds, for algorithms with a
    replay store. `blocking`: actors wait while a queue of queue_size unrolls is full; `dropping`:
    it gives up its oldest unroll instead. Both are for algorithms without a replay store.
    `limiter`: the side that is ahead waits, by the rate limiter of Reverb (settings `limiter`)."""
    queue_size: Count | Auto = "auto"
    """Unrolls in the queue between actors and learner, those in work included, with `blocking` and
    `dropping`; a long queue means more lag. auto: those of two batches."""
    limiter: LimiterConfig = LimiterConfig()
    target_return: float | None = None
    """Stop when the mean return of the last 100 finished episodes reaches this."""
    max_env_steps: Count = 1_000_000
    """Stop after this many environment steps; schedules run over it."""
    max_wall_s: Positive | None = None
    """Stop after this many seconds of training."""
    checkpoint: CheckpointConfig = CheckpointConfig()
    evaluate: EvaluateConfig = EvaluateConfig()
    observe: ObserveConfig = ObserveConfig()
    callbacks: tuple[str, ...] = ()
    """Code that is told about versions, episodes, checkpoints and the end of the run: `wandb`,
    `mlflow`, or `module:name` of a class or an object."""
    supervise: SuperviseConfig = SuperviseConfig()
    times: TimesConfig = TimesConfig()
    plan: PlanConfig = PlanConfig()

    @property
    def tasks(self) -> tuple[str, ...]:
        """Return the names of the environments; actor i has number i modulo their count."""
        return self.envs or (self.env,)

    @property
    def num_learners(self) -> int:
        """Return the number of learners of all groups. Those of a group have consecutive numbers;
        each has a buffer, actors and files of its own."""
        return self.num_groups * self.learners_per_group

    @property
    def has_processes(self) -> bool:
        """Return whether roles are processes, on this machine or on others."""
        return self.engine in ("local", "ray", "mpi")

    @property
    def is_on_one_host(self) -> bool:
        """Return whether all roles of the run are on this host."""
        return self.engine not in ("ray", "mpi")

    @property
    def env_name(self) -> str:
        """Return a short name for all environments together."""
        first, *others = dict.fromkeys(self.tasks)
        more = f"{len(others)} others" if len(others) > 1 else "".join(others)
        return f"{first} + {more}" if more else first

    @model_validator(mode="before")
    @classmethod
    def _fill_defaults(cls, value: Any) -> Any:
        """Replace `auto` and add the algorithm's defaults, so that later code sees only values."""
        return fill(cls, value) if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _check_chosen(self) -> RunConfig:
        check_chosen(type(self), type(self.algorithm), self.plan.choose)
        return self

    @field_validator("algorithm", mode="before")
    @classmethod
    def _load_algorithm_config(cls, value: Any) -> Any:
        """Pick the config class by the algorithm's name, so that algorithms stay an open set."""
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            return load_algorithm_config(value["name"]).model_validate(value)
        return value

    @field_validator("env_kwargs")
    @classmethod
    def _refuse_objects(cls, value: dict[str, Any]) -> dict[str, Any]:
        """Accept plain data only: keywords are saved with the run and sent to other processes."""
        return {str(key): _plain(entry, str(key)) for key, entry in value.items()}


def _plain(value: Any, key: str) -> Any:
    """Return the same data with lists in place of tuples, which no file format keeps."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(entry, key) for entry in value]
    if isinstance(value, dict):
        return {str(name): _plain(entry, key) for name, entry in value.items()}
    raise ValueError(
        f"{key} is {kind_of(value)}; numbers, text, true, false, none, and lists and "
        "mappings of them can be saved with the run. Build the rest in a `module:factory`."
    )


def adds_gradients(config: RunConfig) -> bool:
    """Return whether learners make every update together with others."""
    return len(team_of(0, config)) > 1


def team_of(learner: int, config: RunConfig) -> tuple[int, ...]:
    """Return the learners that make every update together with this one, itself included: those of
    its group, or of all groups if these add up their gradients."""
    if config.combine == "gradients":
        return tuple(range(config.num_learners))
    first = first_of_group(learner, config)
    return tuple(range(first, first + config.learners_per_group))


def first_of_group(learner: int, config: RunConfig) -> int:
    """Return the first learner of a learner's group. It mixes the parameters of the group with
    those of others."""
    return learner - learner % config.learners_per_group


def mixes_groups(config: RunConfig) -> bool:
    """Return whether groups mix their parameters."""
    return config.num_groups > 1 and config.combine != "gradients"


def peers_of(learner: int, config: RunConfig) -> tuple[int, ...]:
    """Return the learners whose parameters a learner reads: the first ones of all other groups, or
    of the group before its own. Only the first one of a group reads any."""
    if not mixes_groups(config) or learner != first_of_group(learner, config):
        return ()
    firsts = tuple(range(0, config.num_learners, config.learners_per_group))
    if config.combine == "gossip":
        return (firsts[firsts.index(learner) - 1],)
    return tuple(first for first in firsts if first != learner)
