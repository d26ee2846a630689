"""What a head and the agents of its hosts tell each other: JSON and bytes, never pickles."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tianji.channels.gauges import Gauge, Gauges
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.engines.agents.peers import Post
from tianji.engines.agents.spanning import Expected
from tianji.engines.interface import Outcome
from tianji.engines.spec import RunSpec
from tianji.envs.build import probe_all
from tianji.errors import UsageError
from tianji.records import LinkFigures
from tianji.reports import Report

TIMES = (Gauge.HEARTBEAT_NS, Gauge.FIRST_STEP_NS)
"""Gauges with a time of the host's clock; the others are durations and counts."""
LENGTH_BYTES = 8


class Shipped(NamedTuple):
    """A checkpoint that crosses to a host without the run folder: its name, and pack()."""

    name: str
    data: bytes


class Question(NamedTuple):
    """What a head tells an agent when it asks for news."""

    timeout_s: float
    """Longest time to wait for news."""
    other_steps: int
    """Environment steps of the run that this group does not count."""
    posts: list[Post]
    """New parameters of other groups."""
    given_up: list[int] = []
    """Hosts whose actors are not started again."""

    def encode(self) -> bytes:
        facts: dict[str, Any] = {"timeout_s": self.timeout_s, "other_steps": self.other_steps}
        facts["given_up"] = self.given_up
        return _with_parts(facts | _headers(self.posts), [post.data for post in self.posts])

    @staticmethod
    def decode(words: bytes) -> Question:
        facts, parts = _without_parts(words)
        posts = _posts(facts, parts)
        return Question(facts["timeout_s"], facts["other_steps"], posts, facts["given_up"])


class Door(NamedTuple):
    """Where the gateway of the learner's host listens for the hosts of its actors."""

    addresses: list[str]
    port: int

    def encode(self) -> bytes:
        return json.dumps(self).encode()

    @staticmethod
    def decode(words: bytes) -> Door:
        return Door(*json.loads(words))


@dataclass(frozen=True, slots=True)
class Span:
    """A host's part in a group that lives on several hosts."""

    host: int
    """Counted from that of the learner, which is 0."""
    keys: str = field(repr=False)
    """LinkKeys.to_text()."""
    listen: str = ""
    """Address on which the learner's host listens; empty: on all that it has."""
    door: Door | None = None
    """Where the learner's host is reached."""
    expected: Expected | None = None
    """What an actors' host must know to take part."""


class Answer(NamedTuple):
    """What an agent has to tell since it was asked last."""

    reports: list[Report]
    gauges: bytes
    """All rows, in the order of the program's roles; empty before there are any."""
    now_ns: int
    """The host's clock when it answered."""
    outcome: Outcome | None
    """How the group ended; None while it runs."""
    checkpoint: Shipped | None = None
    """The newest one, where the host does not have the run folder."""
    posts: list[Post] = []
    """New parameters of this group, for others."""
    lost_hosts: list[int] = []
    """Hosts with actors of this group that were silent for too long."""
    links: list[LinkFigures] = []

    def encode(self) -> bytes:
        name, data = self.checkpoint or ("", b"")
        facts = {
            "reports": self.reports,
            "now_ns": self.now_ns,
            "outcome": self.outcome,
            "checkpoint": name,
            "lost_hosts": self.lost_hosts,
            "links": self.links,
            **_headers(self.posts),
        }
        return _with_parts(facts, [self.gauges, data, *(post.data for post in self.posts)])

    @staticmethod
    def decode(words: bytes) -> Answer:
        facts, (gauges, data, *rest) = _without_parts(words)
        shipped = Shipped(facts["checkpoint"], data) if facts["checkpoint"] else None
        posts, links = _posts(facts, rest), [LinkFigures(*link) for link in facts["links"]]
        now_ns, outcome, lost = facts["now_ns"], facts["outcome"], facts["lost_hosts"]
        return Answer(facts["reports"], gauges, now_ns, outcome, shipped, posts, lost, links)


@dataclass(frozen=True, slots=True)
class GroupOrder:
    """The group that an agent is to run."""

    config: dict[str, Any]
    plan: dict[str, Any]
    run_dir: str
    group: int
    has_head: bool
    start_from: str | None
    mark: str
    """Content of the head's mark in the run folder (files.py)."""
    resume: bool
    address: str = ""
    """Where learners on other hosts reach this host."""
    reports_episodes: bool = False
    """A callback takes the episodes."""
    span: Span | None = None
    """This host's part, where the group lives on several hosts."""

    @staticmethod
    def of(spec: RunSpec, mark: str, resume: bool, span: Span | None = None) -> GroupOrder:
        config, plan = (part.model_dump(mode="json") for part in (spec.config, spec.plan))
        start_from = None if spec.start_from is None else str(spec.start_from.resolve())
        run_dir = str(spec.run_dir.resolve())
        return GroupOrder(
            config,
            plan,
            run_dir,
            spec.group,
            spec.has_head,
            start_from,
            mark,
            resume,
            spec.address,
            spec.reports_episodes,
            span,
        )

    def encode(self, checkpoints: Sequence[Shipped], posts: Sequence[Post] = ()) -> bytes:
        """checkpoints: those to continue from, for a host that does not have the run folder.
        posts: what all groups have posted so far."""
        facts = {**asdict(self), "checkpoints": [c.name for c in checkpoints], **_headers(posts)}
        data = *(shipped.data for shipped in checkpoints), *(post.data for post in posts)
        return _with_parts(facts, data)

    @staticmethod
    def decode(words: bytes) -> tuple[GroupOrder, list[Shipped], list[Post]]:
        facts, parts = _without_parts(words)
        names = facts.pop("checkpoints")
        checkpoints = [Shipped(name, data) for name, data in zip(names, parts, strict=False)]
        posts = _posts(facts, parts[len(names) :])
        del facts["posts"]
        if (span := facts["span"]) is not None:
            door, expected = span.pop("door"), span.pop("expected")
            facts["span"] = Span(
                **span,
                door=None if door is None else Door(*door),
                expected=None if expected is None else Expected(*expected),
            )
        return GroupOrder(**facts), checkpoints, posts

    def to_spec(self, run_dir: Path) -> RunSpec:
        """Build the spec on this host. The spaces are those of the environment that is made here,
        because spaces are no JSON.

        run_dir: the folder of the group here; a checkpoint that was shipped lies there."""
        config, plan = RunConfig.model_validate(self.config), RunPlan.model_validate(self.plan)
        source = config.envs or config.env
        spaces = probe_all(source, config.env_kwargs, action_mask=config.action_mask).spaces
        is_ours = self.start_from is not None and str(run_dir) == self.run_dir
        start_from = Path(self.start_from) if is_ours and self.start_from else None
        return RunSpec(
            config,
            plan,
            spaces,
            source,
            run_dir,
            self.group,
            self.has_head,
            start_from,
            self.address,
            self.reports_episodes,
        )


def _headers(posts: Sequence[Post]) -> dict[str, Any]:
    return {"posts": [[post.board, post.version] for post in posts]}


def _posts(facts: dict[str, Any], parts: Sequence[bytes]) -> list[Post]:
    headers = zip(facts["posts"], parts, strict=True)
    return [Post(board, version, data) for (board, version), data in headers]


def _with_parts(facts: dict[str, Any], parts: Sequence[bytes]) -> bytes:
    """Return facts as JSON and parts of bytes as one string of bytes."""
    head = json.dumps({"facts": facts, "sizes": [len(part) for part in parts]}).encode()
    return b"".join([len(head).to_bytes(LENGTH_BYTES, "little"), head, *parts])


def _without_parts(words: bytes) -> tuple[dict[str, Any], list[bytes]]:
    at = LENGTH_BYTES + int.from_bytes(words[:LENGTH_BYTES], "little")
    head = json.loads(words[LENGTH_BYTES:at])
    parts = []
    for size in head["sizes"]:
        parts.append(words[at : at + size])
        at += size
    return head["facts"], parts


def to_bytes(gauges: Gauges) -> bytes:
    return b"".join(row.tobytes() for row in gauges.rows.values())


def copy_gauges(data: bytes, gauges: Gauges, offset_ns: int) -> None:
    """Copy the gauges of another host; its times become those of this host's clock."""
    words = memoryview(data).cast("q")
    begin = 0
    for row in gauges.rows.values():
        row[:] = words[begin : begin + len(row)]
        begin += len(row)
        for gauge in TIMES:
            if row[gauge]:
                row[gauge] += offset_ns


def check_source(spec: RunSpec) -> None:
    """Raise UsageError where the environment cannot be made on another host."""
    sources = spec.env if isinstance(spec.env, tuple) else (spec.env,)
    if any(not isinstance(source, str) for source in sources):
        raise UsageError(
            f"The environment is a Python object, and engine is '{spec.config.engine}': other "
            "hosts make it by its name. Use a Gymnasium id or module:factory, or --engine local."
        )
