"""What a head and the agents of its hosts tell each other: JSON and bytes, never pickles."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tianji.channels.gauges import Gauge, Gauges
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.engines.interface import Outcome
from tianji.engines.spec import RunSpec
from tianji.envs.build import probe_all
from tianji.errors import UsageError
from tianji.records import Report

TIMES = (Gauge.HEARTBEAT_NS, Gauge.FIRST_STEP_NS)
"""Gauges with a time of the host's clock; the others are durations and counts."""
LENGTH_BYTES = 8


class Shipped(NamedTuple):
    """A checkpoint that crosses to a host without the run folder: its name, and pack()."""

    name: str
    data: bytes


class Answer(NamedTuple):
    """What an agent has to tell since it was asked last."""

    reports: list[Report]
    gauges: bytes
    """All rows, in the order of the program's roles; empty before there are any."""
    now_ns: int
    """The host's clock when it answered."""
    outcome: Outcome | None
    """How the group ended; None while it runs."""
    checkpoint: Shipped | None
    """The newest one, where the host does not have the run folder."""

    def encode(self) -> bytes:
        name, data = self.checkpoint or ("", b"")
        facts = {
            "reports": self.reports,
            "now_ns": self.now_ns,
            "outcome": self.outcome,
            "checkpoint": name,
            "num_gauge_bytes": len(self.gauges),
        }
        return _with_head(facts, self.gauges + data)

    @staticmethod
    def decode(words: bytes) -> Answer:
        facts, rest = _without_head(words)
        gauges, data = rest[: facts["num_gauge_bytes"]], rest[facts["num_gauge_bytes"] :]
        shipped = Shipped(facts["checkpoint"], data) if facts["checkpoint"] else None
        return Answer(facts["reports"], gauges, facts["now_ns"], facts["outcome"], shipped)


@dataclass(frozen=True, slots=True)
class GroupOrder:
    """The group that an agent is to run."""

    config: dict[str, Any]
    plan: dict[str, Any]
    run_dir: str
    mark: str
    """Content of the head's mark in the run folder (files.py)."""
    resume: bool

    @staticmethod
    def of(spec: RunSpec, mark: str, resume: bool) -> GroupOrder:
        config, plan = (part.model_dump(mode="json") for part in (spec.config, spec.plan))
        return GroupOrder(config, plan, str(spec.run_dir.resolve()), mark, resume)

    def encode(self, checkpoint: Shipped | None) -> bytes:
        """checkpoint: the one to continue from, for a host that does not have the run folder."""
        name, data = checkpoint or ("", b"")
        return _with_head({**asdict(self), "checkpoint": name}, data)

    @staticmethod
    def decode(words: bytes) -> tuple[GroupOrder, Shipped | None]:
        facts, data = _without_head(words)
        name = facts.pop("checkpoint")
        return GroupOrder(**facts), Shipped(name, data) if name else None

    def to_spec(self, run_dir: Path) -> RunSpec:
        """Build the spec on this host. The spaces are those of the environment that is made here,
        because spaces are no JSON."""
        config, plan = RunConfig.model_validate(self.config), RunPlan.model_validate(self.plan)
        source = config.envs or config.env
        spaces = probe_all(source, config.env_kwargs).spaces
        return RunSpec(config, plan, spaces, source, run_dir)


def _with_head(facts: dict[str, Any], rest: bytes) -> bytes:
    head = json.dumps(facts).encode()
    return len(head).to_bytes(LENGTH_BYTES, "little") + head + rest


def _without_head(words: bytes) -> tuple[dict[str, Any], bytes]:
    end = LENGTH_BYTES + int.from_bytes(words[:LENGTH_BYTES], "little")
    facts: dict[str, Any] = json.loads(words[LENGTH_BYTES:end])
    return facts, words[end:]


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
