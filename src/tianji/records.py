"""What is known of a run: the lines of metrics.jsonl, summary.json, and what they are made of.

All of it is JSON, whether it crosses a pipe (reports.py) or lies in a run folder. `with_defaults`
completes what an older version has written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    TypeAlias,
    TypedDict,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

StoppedBecause: TypeAlias = Literal[
    "target_reached", "max_env_steps", "max_wall", "interrupted", "failed"
]
CriticalPath: TypeAlias = Literal[
    "actors", "inference", "learner", "buffer", "groups", "both", "neither"
]
"""The role that sets the pace; `both` work all the time, `neither` does always. `groups`: learners
wait for each other."""
Level: TypeAlias = Literal["info", "warning", "error"]
Spent: TypeAlias = dict[str, dict[str, float]]
"""Seconds by role and by what they went to."""


class Rates(TypedDict):
    """Environment steps per second."""

    produced: float
    received: float
    trained: float
    unique_trained: float


class Lag(TypedDict):
    """Lag of the items taken, in versions; None before the first."""

    mean: float | None
    p95: float | None
    max: int | None


class Ratio(TypedDict):
    """Items taken per item put."""

    target: float | None
    actual: float | None


class PeerAge(TypedDict):
    """Age of the oldest state that a group mixes with, in own versions since it was new. Ages count
    from the last start of the group's learner, and `waited_s` from the start of the session."""

    mean: float | None
    """None before the first mix."""
    max: int
    waited_s: float
    """Time in which the group took no batch because a peer's state was too old."""


class Rounds(TypedDict):
    """What the buffer of a run that gathers gradients knows of its rounds."""

    counts: list[int]
    """Gradients used, by actor."""
    discarded_steps: int
    own_steps: int
    absent: list[int]
    """Actors that rounds no longer wait for."""
    closing_s: float
    """Given time to collect the sums of a closed round."""
    waiting_for: NotRequired[list[int]]
    late: NotRequired[list[int]]
    """Actors that the open round waits for, for longer than they usually take."""
    open_s: NotRequired[float]
    """Age of the open round."""


class GatherShares(TypedDict):
    """What the gauges show of the gradients over some seconds."""

    rounds_per_s: float
    gradients_per_s: float
    discarded_share: float
    discarded_step_share: float | None
    """None where dropped gradients were never computed."""
    overdue_share: float


class GatherRule(TypedDict):
    """How a run gathers, as it was asked."""

    rule: str
    num_gradients: int
    times: str
    network: str


class Gathering(GatherRule, GatherShares, Rounds):
    """How gradients are gathered: the rule, the rounds, the rates."""


class Evaluation(TypedDict):
    """The result of one evaluation."""

    version: int
    episodes: int
    cut_episodes: int
    mean_return: float
    std_return: float
    min_return: float
    max_return: float
    returns_by_env: NotRequired[dict[str, float]]


class ProgressRecord(TypedDict):
    """How far a run has come."""

    wall_s: float
    """Training time so far."""
    env_steps: int
    episodes: int
    mean_return_100: float | None
    """None before an episode has finished."""
    best_mean_return_100: float | None
    returns_by_env: dict[str, float | None]
    time_to_target_s: float | None


class _GroupCounts(TypedDict):
    updates: int
    version: int
    lag_versions: Lag
    lag_histogram: list[int]
    ratio: Ratio
    discarded_items: int
    blocked_inserts: int
    """Unrolls that a rate limiter made wait, in this session."""
    blocked_s: float
    """Time in which actors had such an unroll, added up over the actors."""
    env_failures: int


class _Progressed(ProgressRecord, _GroupCounts):
    pass


class GroupFigures(TypedDict):
    """How one group of a run does."""

    group: int
    env_steps: int
    rates_per_s: Rates
    lag_versions: Lag
    updates: int
    version: int
    restarts: int
    peer_age: NotRequired[PeerAge]
    """Where groups mix their parameters, and the first learner of this one has reported."""


class HostFigures(TypedDict):
    """A host that took part in a run."""

    host: str
    """Its name."""
    groups: list[int]
    usable_cores: int
    from_learner_bytes: int
    """What crossed to the actors here from a learner on another host."""
    to_learner_bytes: int
    policies: int
    """Versions of the policy that crossed; each once, whatever the number of actors."""


class LinkFigures(NamedTuple):
    """What has crossed between the host of a learner and another host of its group."""

    host: int
    """Counted from that of the learner."""
    sent_bytes: int
    received_bytes: int
    policies: int
    """Versions that were sent there."""

    def plus(self, before: LinkFigures | None) -> LinkFigures:
        """Return these figures with those of an earlier link to the same host, if there was one."""
        if before is None:
            return self
        return LinkFigures(
            self.host,
            before.sent_bytes + self.sent_bytes,
            before.received_bytes + self.received_bytes,
            before.policies + self.policies,
        )


class BufferRecord(TypedDict):
    """Where a buffer stands."""

    items_put: int
    items_taken: int
    lag_versions: Lag
    lag_histogram: list[int]
    discarded_items: int
    store: dict[str, float]
    """Figures that the store reports, by name."""
    gather: Rounds | None


class GroupRecord(_GroupCounts):
    """Where a group stands: its learner and its buffer."""

    learner: dict[str, float]
    """Figures that the algorithm and the store report, by name."""
    gather: NotRequired[Rounds]
    peer_age: NotRequired[PeerAge]


class LearnerMetrics(ProgressRecord, GroupRecord):
    """Where the run stands, as the learner's side knows it."""


class RunMetrics(LearnerMetrics):
    """Where a run of several groups stands, as its head knows it."""

    groups: list[GroupFigures]


class SessionShares(TypedDict):
    """Means over the whole session, by role where they are of one."""

    rates_per_s: Rates
    busy_s: dict[str, float]
    busy_share: dict[str, float]


class SessionMetrics(LearnerMetrics, SessionShares):
    """The last record of the learner's side, with the means over the whole session."""


class RunSession(SessionMetrics):
    """The same for a run of several groups."""

    groups: list[GroupFigures]


class GpuUse(TypedDict):
    """How a run uses its GPU.

    busy_share: of the time in which a kernel ran, as the driver says; None if it does not
    synchronisations_per_version: times that the learner waited for the GPU
    host_to_device_bytes_per_step: bytes copied to the GPU, by all roles
    """

    busy_share: float | None
    synchronisations_per_version: float
    host_to_device_bytes_per_step: float


class Measured(TypedDict):
    """What the gauges and the system show over some seconds, by role."""

    rates_per_s: Rates
    busy_share: dict[str, float]
    paced_share: dict[str, float]
    span_s: float
    worked_s: Spent
    waited_s: Spent
    core_s: dict[str, float]
    """Processor time of its thread, and of the other threads that it answers for."""
    gpu: GpuUse | None


class Metrics(_Progressed, Measured):
    """A line of metrics.jsonl: all that is known of a run at one moment."""

    learner: dict[str, float]
    groups: NotRequired[list[GroupFigures]]
    """Each group, where a run has several."""
    gather: NotRequired[Gathering]
    evaluation: NotRequired[Evaluation]
    usable_cores: int | None
    kind: dict[str, str]
    """Kind of every role: `actor`, `buffer`, `learner` or `evaluator`."""
    activity: dict[str, str]
    restarts: int
    learner_restarts: int
    """Those in which the learner was away. The next one: those in which actors were."""
    actor_restarts: int
    rss_bytes: dict[str, int]
    actors_per_thread: int
    """Actors that take turns on one thread."""
    time: NotRequired[str]
    """When the line was written, ISO 8601."""
    silent_s: NotRequired[dict[str, float]]
    """Seconds since the last sign of life; only on the screen."""


class SummaryFacts(TypedDict, total=False):
    """What the process that supervises a run adds to its last record."""

    stopped_because: StoppedBecause
    planning_s: float | None
    start_up_s: float | None
    rates_per_s: Rates
    gather: Gathering | None
    restarts: int
    replans: int
    groups: list[GroupFigures]
    """Each group: rates over the whole session, lag, counts."""
    hosts: list[HostFigures]
    busy_share: dict[str, float]
    busy_s: dict[str, float]
    waited_s: Spent
    critical_path: CriticalPath | None
    explanation: list[str]
    device: str
    inference: str
    gpu: GpuUse | None
    predicted: dict[str, Any] | None
    """The plan's prediction."""
    prediction_error: dict[str, float] | None
    checkpoint: str | None
    can_be_filmed: bool | None
    callback_errors: int
    """Calls of callbacks that raised an exception."""
    first_cause: NotRequired[str]
    """Only of a run that failed."""
    stop_reason: NotRequired[str]
    """Only of a run that a callback stopped."""


class Done(_Progressed, SummaryFacts):
    """What a run did."""


class RunIdentity(TypedDict):
    """Which run a summary is of."""

    env: str
    algorithm: str
    style: str
    engine: str
    seed: int
    target_return: float | None
    run_dir: str


class Summary(RunIdentity, Done):
    """summary.json: what a run did, with the same keys for every run."""


T = TypeVar("T")


def nothing(record: type[T], **known: Any) -> T:
    """Return a record of nothing done: None where it is allowed, else zeros and empty values.

    known: values that are not so. Keys that a record may lack are left out.
    """
    hints = get_type_hints(record, include_extras=True)
    found = {key: _empty(hint) for key, hint in hints.items() if key not in known}
    return cast("T", {key: v for key, v in found.items() if v is not NotRequired} | known)


def _empty(hint: Any) -> Any:
    if get_origin(hint) is NotRequired:
        return NotRequired
    if type(None) in get_args(hint):
        return None
    return nothing(hint) if is_typeddict(hint) else (get_origin(hint) or hint)()


NO_RATES = nothing(Rates)
NOTHING_LEARNED = nothing(LearnerMetrics)
"""What is true before the learner's first report."""
NOTHING_MEASURED = nothing(Measured)
NO_ROUNDS = nothing(Rounds)
NOTHING_GATHERED = nothing(GatherShares, discarded_step_share=0.0)
NO_METRICS = nothing(Metrics)
NOTHING_DONE = nothing(Done, stopped_because="failed")
"""What is true of a run that did nothing; a run that failed early has few facts of its own."""
_GATHER_DEFAULTS = {"times": "none", "network": "none", **NO_ROUNDS, **NOTHING_GATHERED}


def roles_of(record: Metrics, kind: str) -> list[str]:
    """Return the names of the roles of one kind."""
    return [role for role, its_kind in record["kind"].items() if its_kind == kind]


def without_open_round(gather: Gathering) -> Gathering:
    """Leave out what is said about the open round: a run that is over has none."""
    open_round = ("waiting_for", "late", "open_s")
    return cast("Gathering", {k: v for k, v in gather.items() if k not in open_round})


def with_defaults(found: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Complete a record that was read from a file; missing numbers count as nothing done."""
    whole = {**found, **{key: v for key, v in defaults.items() if found.get(key) is None}}
    for key in ("rates_per_s", "lag_versions", "ratio"):
        whole[key] = {**defaults[key], **(found.get(key) or {})}
    if whole.get("gather"):
        whole["gather"] = {**_GATHER_DEFAULTS, **whole["gather"]}
    return whole
