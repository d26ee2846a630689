"""What the roles of a run tell its supervisor, and what the supervisor tells the observer.

All of it is JSON. Reports form a union: `kind` says which record a report is. A worker's pipe adds
the worker's name to a report without a role.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict

from tianji.records import Evaluation, LearnerMetrics, Rates, SessionMetrics, StoppedBecause


class BoardBytes(TypedDict):
    """Sizes that are known once the network is built."""

    policy_board_bytes: int
    sum_boards_bytes: NotRequired[int]


class RestorePoint(TypedDict):
    """Where a restored learner continues; -1 where it found no checkpoint and begins anew."""

    version: int
    env_steps: int


class Imbalance(TypedDict):
    """A run is slower than it should be, or no longer is."""

    is_over: bool
    role: str
    measured: float
    expected: float
    text: str
    rates_per_s: Rates
    busy_share: dict[str, float]
    paced_share: dict[str, float]
    core_share: dict[str, float]


class CheckpointRecord(TypedDict):
    """A checkpoint that is on disk."""

    path: str
    """Its folder."""
    version: int
    env_steps: int
    updates: int
    wall_s: float
    mean_return_100: float | None
    """None before 100 episodes have finished."""


class _Spoken(TypedDict):
    role: NotRequired[str]


class BuiltReport(_Spoken):
    """The learner has built the network."""

    kind: Literal["built"]
    record: BoardBytes


class MetricsReport(_Spoken):
    """A record for the log and the display."""

    kind: Literal["metrics"]
    record: LearnerMetrics


class FinishedEpisodes(TypedDict):
    """Episodes of a group since its last report."""

    until_ns: int
    """Time of this report."""
    episodes: list[tuple[int, float, int, int]]
    """End, return, length and actor of each (types.Episode)."""


class EpisodesReport(_Spoken):
    """Episodes have finished; only where a head merges groups, or a callback takes them."""

    kind: Literal["episodes"]
    record: FinishedEpisodes


class EvaluationReport(_Spoken):
    """An evaluation has ended."""

    kind: Literal["evaluation"]
    record: Evaluation


class RestoredReport(_Spoken):
    """The learner continues from a checkpoint."""

    kind: Literal["restored"]
    text: str
    record: RestorePoint


class ImbalanceReport(_Spoken):
    """The run has become slower than it should be, or is fast again."""

    kind: Literal["imbalance"]
    text: str
    record: Imbalance


class CheckpointReport(_Spoken):
    """A checkpoint was written."""

    kind: Literal["checkpoint_written"]
    text: str
    record: CheckpointRecord


EventKind: TypeAlias = Literal[
    "note",
    "checkpoint_failed",
    "callback_failed",
    "error",
    "restart",
    "silent",
    "env_failure",
    "folder_lost",
]


class Event(_Spoken):
    """Something a person should know, in words."""

    kind: EventKind
    text: str
    traceback: NotRequired[str]
    stops_learner: NotRequired[bool]
    """The learner is away during this restart."""
    stops_actors: NotRequired[bool]
    """Actors are away during this restart."""


class DoneReport(_Spoken):
    """The learner's side is finished."""

    kind: Literal["done"]
    because: StoppedBecause
    record: SessionMetrics


Report: TypeAlias = (
    BuiltReport
    | MetricsReport
    | EpisodesReport
    | EvaluationReport
    | RestoredReport
    | ImbalanceReport
    | CheckpointReport
    | Event
    | DoneReport
)
