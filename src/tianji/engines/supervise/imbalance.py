"""Imbalances that last: found in the gauges, told as reports, answered by a re-plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeAlias

from tianji.balance.drift import Drift, Finding, Seen, Speeds
from tianji.channels.gauges import Gauge, Gauges
from tianji.config.plan import RunPlan
from tianji.observe.watch import Watch
from tianji.records import Measured
from tianji.reports import Imbalance, ImbalanceReport
from tianji.types import Clock

Replan: TypeAlias = Callable[[Speeds], bool]
"""Returns whether a better plan is known that is worth a restart."""

LOOK_PERIOD_NS = 10**9
ASK_PERIOD_NS = 10 * 10**9


class Imbalances:
    """Looks once a second. Lives in the supervisor, far from the data."""

    def __init__(
        self,
        plan: RunPlan,
        gauges: Gauges,
        replan: Replan | None = None,
        now_ns: Clock = time.monotonic_ns,
        pids: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        """pids: the workers' processes, for their processor time."""
        promised = plan.prediction.received if plan.prediction is not None else None
        self._plan = plan
        self._drift = Drift(promised, plan.num_cores, is_serial=plan.lag_target == 0)
        self._watch = Watch(gauges, now_ns)
        self._learner = gauges.the("learner")
        self._actors = list(gauges.of_kind("actor"))
        self._replan = replan
        self._pids = pids
        self._now_ns = now_ns
        self._next_ns = self._next_ask_ns = 0
        self.is_replan_due = False
        """The run should end at its next version and go on under another plan."""

    def look(self) -> ImbalanceReport | None:
        """Return a report if there is something to tell."""
        now_ns = self._now_ns()
        if now_ns < self._next_ns:
            return None
        self._next_ns = now_ns + LOOK_PERIOD_NS
        needs_times = self._replan is not None or self._plan.emulator_threads > 1
        self._watch.look(self._pids() if needs_times else None)
        record = self._watch.now().measured
        if record["span_s"] < 0.5 * LOOK_PERIOD_NS / 1e9:
            return None  # the first look: there is nothing to compare with
        seen = Seen(
            at_s=now_ns / 1e9,
            version=self._learner[Gauge.VERSION],
            rate=record["rates_per_s"]["received"],
            busy_cores=self._busy_cores(record),
            learner_waits=record["paced_share"].get("learner", 0.0),
            actors_wait=self._of_actors(record["paced_share"]) / max(1, len(self._actors)),
        )
        finding = self._drift.observe(seen)
        if self._drift.lasting is not None:
            self._ask(record, now_ns)
        if finding is None:
            return None
        return ImbalanceReport(
            kind="imbalance",
            role="supervisor",
            text=finding.text,
            record=_record(finding, record),
        )

    def _busy_cores(self, record: Measured) -> float:
        """Count what roles are busy with, or the time of their threads where that is more: while
        the threads of an emulator work, its actor may sleep."""
        used = _core_share(record)
        return sum(
            max(self._cores_of(role, share), used.get(role, 0.0))
            for role, share in record["busy_share"].items()
        )

    def _cores_of(self, role: str, share: float) -> float:
        threads = {"learner": self._plan.learner_threads, "buffer": 1}
        return share * threads.get(role, self._plan.actor_threads)

    def _of_actors(self, shares: Mapping[str, float]) -> float:
        return sum(shares.get(name, 0.0) for name in self._actors)

    def _ask(self, record: Measured, now_ns: int) -> None:
        """Ask for a better plan now and then: the measured speeds change."""
        if self._replan is None or now_ns < self._next_ask_ns:
            return
        self._next_ask_ns = now_ns + ASK_PERIOD_NS
        rates, busy, cores = record["rates_per_s"], record["busy_share"], _core_share(record)
        acting, acting_cpu = self._of_actors(busy), self._of_actors(cores)
        self.is_replan_due = self._replan(
            Speeds(
                produced=rates["produced"],
                received=rates["received"],
                acting=acting,
                learning=busy.get("buffer", 0.0) + busy.get("learner", 0.0),
                acting_cpu=acting_cpu,
                learning_cpu=cores.get("learner", 0.0),
            )
        )


def _record(finding: Finding, seen: Measured) -> Imbalance:
    return Imbalance(
        is_over=finding.is_over,
        role=finding.role,
        measured=finding.measured,
        expected=finding.expected,
        text=finding.text,
        rates_per_s=seen["rates_per_s"],
        busy_share=seen["busy_share"],
        paced_share=seen["paced_share"],
        core_share=_core_share(seen),
    )


def _core_share(seen: Measured) -> dict[str, float]:
    return {role: spent / seen["span_s"] for role, spent in seen["core_s"].items()}
