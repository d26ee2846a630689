"""Training: a group from its first version to the end of the run.

Takes      unrolls from the actors
Gives      policy versions, checkpoints, reports
Waits for  nothing
Unblocked  by arrivals
Stops      when the run has reached a target or a limit, or is told to
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tianji.channels.gauges import Gauge, Gauges, worked_ns
from tianji.channels.orders import Stop
from tianji.channels.reports import Reports
from tianji.learner.checkpoints import Checkpoints
from tianji.learner.episodes import EpisodeReports
from tianji.learner.group import Group
from tianji.learner.joined import JoinedLearner
from tianji.learner.progress import Progress
from tianji.records import LearnerMetrics, Rates, SessionMetrics, SessionShares, StoppedBecause
from tianji.reports import Event, MetricsReport
from tianji.types import Clock

PATIENCE_S = 1.0
"""Time for the version in work after a stop or the time limit; then its remaining updates are left
out."""
CUT_SHORT = "The version in work ends with the updates made so far, so that the run can stop."


class Training:
    """`tick` moves buffer and learner on; between versions it saves and reports."""

    def __init__(
        self,
        group: Group,
        progress: Progress,
        checkpoints: Checkpoints,
        gauges: Gauges,
        reports: Reports,
        report_period_s: float,
        now_ns: Clock = time.monotonic_ns,
        episodes: EpisodeReports | None = None,
    ) -> None:
        """gauges: of every role, for the shares of the whole session. episodes: reports them to
        the head of a run with several groups, or to callbacks."""
        self.group = group
        self.progress = progress
        self._checkpoints = checkpoints
        self._gauges = gauges
        self._reports = reports
        self._report_period_ns = int(report_period_s * 1e9)
        self._now_ns = now_ns
        self._episodes = episodes
        self._next_report_ns = 0
        self._steps_before = group.steps()
        self._patience = Patience()  # a person waits, so this is never on a virtual clock
        self._is_cut_short = False
        self._joined = group.learner if isinstance(group.learner, JoinedLearner) else None
        self._has_loss = False
        """A checkpoint was deleted, and all groups shall save."""
        if self._joined is not None:
            meeting = self._joined.meeting
            meeting.ask(lambda: progress.env_steps, self._wants_to_save, progress.fraction_at)

    def _wants_to_save(self) -> bool:
        return self._has_loss or self._checkpoints.is_due(self._now_ns())

    def resume(self, highest_version: int) -> dict[str, Any] | None:
        """Continue from the newest intact checkpoint; return the actors' saved states, if any.

        highest_version: the highest one already published in this session, -1 if none.
        """
        return self._checkpoints.resume(highest_version)

    def start(self) -> None:
        """Publish the first version, which starts the actors, and save it, so that there is always
        a checkpoint to go back to."""
        self._steps_before = self.group.steps()
        self._show_progress()
        self.group.start()
        now_ns = self._now_ns()
        self._checkpoints.save(now_ns)
        self._next_report_ns = now_ns

    def tick(self) -> bool:
        """Move the buffer on, then the learner."""
        worked = self.group.tick_buffer()
        worked |= self._learn()
        if not worked:
            self.tell_news()
        return worked

    def tick_learner(self) -> bool:
        """Move the learner on, where the buffer has a worker of its own."""
        worked = self._learn()
        if not worked:
            self.tell_news()
        return worked

    def _learn(self) -> bool:
        if not self.group.tick_learner():
            return False
        if self._joined is not None and self._joined.waits_for_others:
            return True
        if self.group.learner.is_between_versions:
            self._after_version(self._now_ns())
        return True

    @property
    def due_ns(self) -> int:
        """Time of the next work that needs no arrival; 0: there is none."""
        due = self.group.buffer.due_ns, self.group.learner.due_ns
        return min(filter(None, due), default=0)

    def tell_news(self) -> None:
        """Report what the buffer has to say. A round that waits for an actor makes no versions,
        after which it would be reported otherwise."""
        self._show_progress()
        for text in self.group.buffer.news():
            self._reports(Event(kind="note", role="buffer", text=text))
            self._report(self._now_ns())

    def _show_progress(self, is_last: bool = False) -> None:
        """Tell a head how far this group has come."""
        if self._episodes is not None:
            self.group.gauges.learner[Gauge.ENV_STEPS] = self.progress.env_steps
            self._episodes.tick(is_last)

    def _after_version(self, now_ns: int) -> None:
        self._show_progress()
        is_report_due = now_ns >= self._next_report_ns
        # Looking at the disk may take a while, and there may be thousands of versions a second.
        if self._is_save_due(now_ns) or (is_report_due and self._finds_loss()):
            self._checkpoints.save(now_ns)
            self._has_loss = False
        if is_report_due:
            self._report(now_ns)

    def _is_save_due(self, now_ns: int) -> bool:
        """Learners that make updates together save the same versions."""
        if self._joined is None:
            return self._checkpoints.is_due(now_ns)
        return self._joined.meeting.agreed.is_save_due

    def _finds_loss(self) -> bool:
        """Return whether to save now because a checkpoint was deleted."""
        has_loss = self._checkpoints.finds_loss()
        if self._joined is None:
            return has_loss
        self._has_loss = has_loss
        return False

    def _report(self, now_ns: int) -> None:
        self._next_report_ns = now_ns + self._report_period_ns
        self._reports(MetricsReport(kind="metrics", role="learner", record=self.record(now_ns)))

    def ended(self, stop: int) -> StoppedBecause | None:
        """Return why the run is over; None while it goes on. A run ends between two versions, or
        at once when it must. stop: how urgently it is asked to stop (Stop)."""
        if not self.group.learner.is_between_versions:
            if self._patience.is_spent(stop) or self._is_late():
                self._cut_short()
            return "interrupted" if stop == Stop.NOW else None
        self._note_first_step()
        because = self.progress.stop_reason(self._now_ns())
        if stop > Stop.NO:
            because = "interrupted"
        if because is None and self._joined is not None:
            because = self._joined.meeting.agreed.because
        if because is None or stop == Stop.NOW:
            return because
        return self._end(because) if self.group.buffer.withdraw() else None

    def _end(self, because: StoppedBecause) -> StoppedBecause | None:
        """Return why the run is over. Learners that make updates together end it together."""
        return because if self._joined is None else self._joined.end_together(because)

    def _cut_short(self) -> None:
        """End the version in work with the updates that were made: the end cannot wait for it."""
        if not self._is_cut_short:
            self._is_cut_short = True
            self.group.learner.cut_short()
            self._reports(Event(kind="note", role="learner", text=CUT_SHORT))

    def _is_late(self) -> bool:
        """Return whether the time limit has passed a while ago."""
        return self.progress.stop_reason(self._now_ns() - int(PATIENCE_S * 1e9)) == "max_wall"

    def _note_first_step(self) -> None:
        if not self.progress.started_ns:
            self.progress.started_ns = self.group.first_step_ns()

    def record(self, now_ns: int) -> LearnerMetrics:
        """Return where the run stands, as the learner knows it."""
        self._note_first_step()
        return {**self.progress.record(now_ns), **self.group.record()}

    def _whole_session(self, now_ns: int) -> SessionShares:
        """Return rates and shares since the session began; steps of a checkpoint do not count."""
        elapsed_ns = max(1, now_ns - (self.progress.started_ns or now_ns))
        before, after = self._steps_before, self.group.steps()
        trained = after.trained - before.trained
        unique_trained = after.unique_trained - before.unique_trained
        busy = {name: worked_ns(row) for name, row in self._gauges.rows.items()}
        return SessionShares(
            rates_per_s=Rates(
                produced=after.produced / elapsed_ns * 1e9,
                received=after.received / elapsed_ns * 1e9,
                trained=trained / elapsed_ns * 1e9,
                unique_trained=unique_trained / elapsed_ns * 1e9,
            ),
            busy_s={name: ns / 1e9 for name, ns in busy.items()},
            busy_share={name: min(1.0, ns / elapsed_ns) for name, ns in busy.items()},
        )

    def close(self, save: bool, show_life: Callable[[], None] = lambda: None) -> SessionMetrics:
        """Write the last checkpoint, wait for it, and return the last record, with the rates and
        shares of the whole session. show_life: called while this waits."""
        now_ns = self._now_ns()
        self._show_progress(is_last=True)
        record: SessionMetrics = {**self.record(now_ns), **self._whole_session(now_ns)}
        self._reports(MetricsReport(kind="metrics", role="learner", record=record))
        if save and self.group.learner.is_between_versions:
            self._checkpoints.save(self._now_ns(), is_last=True)
        self._checkpoints.close(show_life)
        return record


class Patience:
    """Limits the time for the version in work after a stop: `is_spent(level)` returns whether
    PATIENCE_S have passed since the first call with a level above NO."""

    def __init__(self, now_ns: Clock = time.monotonic_ns) -> None:
        self._now_ns = now_ns
        self._since_ns: int | None = None

    def is_spent(self, level: int) -> bool:
        if level == Stop.NO:
            return False
        now_ns = self._now_ns()
        if self._since_ns is None:
            self._since_ns = now_ns
        return now_ns - self._since_ns > PATIENCE_S * 1e9
