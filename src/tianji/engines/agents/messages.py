"""What a head and the agents of its hosts tell each other: JSON and bytes, never pickles."""

from __future__ import annotations

import json
from dataclasses import dataclass
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


class Answer(NamedTuple):
    """What an agent has to tell since it was asked last."""

    reports: list[Report]
    gauges: bytes
    """All rows, in the order of the program's roles; empty before there are any."""
    now_ns: int
    """The host's clock when it answered."""
    outcome: Outcome | None
    """How the group ended; None while it runs."""

    def encode(self) -> tuple[str, bytes]:
        facts = {"reports": self.reports, "now_ns": self.now_ns, "outcome": self.outcome}
        return json.dumps(facts), self.gauges

    @staticmethod
    def decode(facts: str, gauges: bytes) -> Answer:
        found = json.loads(facts)
        return Answer(found["reports"], gauges, found["now_ns"], found["outcome"])


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


@dataclass(frozen=True, slots=True)
class GroupOrder:
    """The group that an agent is to run."""

    config: dict[str, Any]
    plan: dict[str, Any]
    run_dir: str
    resume: bool

    @staticmethod
    def of(spec: RunSpec, resume: bool) -> GroupOrder:
        return GroupOrder(
            spec.config.model_dump(mode="json"),
            spec.plan.model_dump(mode="json"),
            str(spec.run_dir.resolve()),
            resume,
        )

    def encode(self) -> str:
        return json.dumps(
            {
                "config": self.config,
                "plan": self.plan,
                "run_dir": self.run_dir,
                "resume": self.resume,
            }
        )

    @staticmethod
    def decode(text: str) -> GroupOrder:
        return GroupOrder(**json.loads(text))

    def to_spec(self) -> RunSpec:
        """Build the spec on this host. The spaces are those of the environment that is made here,
        because spaces are no JSON."""
        config, plan = RunConfig.model_validate(self.config), RunPlan.model_validate(self.plan)
        source = config.envs or config.env
        spaces = probe_all(source, config.env_kwargs).spaces
        return RunSpec(config, plan, spaces, source, Path(self.run_dir))


def check_source(spec: RunSpec) -> None:
    """Raise UsageError where the environment cannot be made on another host."""
    sources = spec.env if isinstance(spec.env, tuple) else (spec.env,)
    if any(not isinstance(source, str) for source in sources):
        raise UsageError(
            f"The environment is a Python object, and engine is '{spec.config.engine}': other hosts "
            "make it by its name. Use a Gymnasium id or module:factory, or --engine local."
        )
