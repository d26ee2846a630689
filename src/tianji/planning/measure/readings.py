"""What a profile's worker answers: plain records, the same on both sides of the pipe."""

from __future__ import annotations

from typing import Literal

from tianji.config.schema import Strict

SAMPLER = "sampler"
TRAINER = "trainer"
"""Names of processes begin with what they are."""
LOOK_S = 0.1
"""How often a worker asks itself whether its figure is stable."""


class Span(Strict):
    """When to work, and what of it counts. CLOCK_MONOTONIC, which all processes share, so that
    several workers measure at the very same time."""

    begin_ns: int
    end_ns: int
    is_alone: bool
    """A figure that is stable ends the work early; else everybody works to the end."""


class Command(Strict):
    """One line to a worker; it answers each with one record."""

    do: Literal["build", "work", "record"]
    plan: dict[str, object] = {}
    span: Span | None = None
    threads: int = 1


class Built(Strict):
    """An actor or a learner stands ready."""

    build_s: float
    memory_bytes: int
    grown_bytes: int = 0
    """By how much memory grew while it was built."""
    policy_bytes: int = 0


class Sampled(Strict):
    """Unrolls of one actor."""

    unroll_s: float
    cpu_s: float
    noise: float
    environment_share: float
    step_s: float
    """One step of one environment."""
    unevenness: float
    reset_factor: float
    """How long a step with a reset in it takes, over one without."""
    send_s: float
    disturbed_share: float
    """Of the time, what it waited for a core that others had."""
    memory_bytes: int


class Trained(Strict):
    """Versions of one learner."""

    version_s: float
    cpu_s: float
    noise: float
    update_s: float
    receive_s: float
    publish_s: float
    memory_bytes: int
