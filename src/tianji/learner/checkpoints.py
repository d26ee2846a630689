"""The checkpoints of a run: when one is due, what is in it, and how a run continues from one."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from tianji.channels.gauges import Activity, Gauge
from tianji.channels.reports import Reports
from tianji.checkpoint.load import Choice, latest, list_checkpoints, read_checkpoint, verify
from tianji.checkpoint.schema import (
    Snapshot,
    checkpoints_folder,
    folder_name,
    version_of,
)
from tianji.checkpoint.writer import Writer, WriterEvent
from tianji.config.run import CheckpointConfig
from tianji.learner.group import Group
from tianji.learner.joined import JoinedLearner
from tianji.learner.meeting import oldest_of_all
from tianji.learner.progress import Progress
from tianji.observe.run_log import highest_version
from tianji.reports import CheckpointRecord, CheckpointReport, Event, RestoredReport, RestorePoint
from tianji.types import Clock

ActorStates: TypeAlias = Callable[[], dict[str, Any] | None]
"""Returns the actors' states for an exact resume, or None where they are out of reach."""
BufferState: TypeAlias = dict[str, Any]


class Checkpoints:
    """Writes them from copies, in a thread of its own, so that training goes on meanwhile."""

    def __init__(
        self,
        config: CheckpointConfig,
        run_dir: Path,
        group: Group,
        progress: Progress,
        reports: Reports,
        actor_states: ActorStates,
        adapt_buffer: Callable[[BufferState], BufferState],
        now_ns: Clock = time.monotonic_ns,
        start_from: Path | None = None,
    ) -> None:
        """adapt_buffer: turns a saved buffer state into one for the present number of actors.
        start_from: the checkpoint that a resume continues from, while nothing newer was written
        here; None: the newest one in the folder."""
        self._config = config
        self._run_dir = run_dir
        self._group = group
        self._progress = progress
        self._reports = reports
        self._actor_states = actor_states
        self._adapt_buffer = adapt_buffer
        self._start_from = start_from
        self._now_ns = now_ns
        self._writer = Writer(run_dir, config.keep_last, self._on_event)
        self._next_ns = 0

    def _on_event(self, kind: WriterEvent, text: str, snapshot: Snapshot) -> None:
        if kind == "checkpoint_failed":
            self._reports(Event(kind=kind, role="learner", text=text))
            return
        facts = snapshot.facts
        record = CheckpointRecord(
            path=str(checkpoints_folder(self._run_dir) / folder_name(snapshot.version)),
            version=snapshot.version,
            env_steps=facts["env_steps"],
            updates=facts["updates"],
            wall_s=facts["wall_s"],
            mean_return_100=facts["mean_return_100"],
        )
        self._reports(CheckpointReport(kind=kind, role="learner", text=text, record=record))

    def is_due(self, now_ns: int) -> bool:
        return now_ns >= self._next_ns

    def finds_loss(self) -> bool:
        """Return whether somebody has deleted the newest one. This looks at the disk."""
        return self._writer.finds_loss()

    def save(self, now_ns: int, is_last: bool = False) -> None:
        row = self._group.gauges.learner
        row[Gauge.ACTIVITY] = Activity.SAVING
        self._next_ns = now_ns + int(self._config.period_s * 1e9)
        self._writer.submit(self._snapshot(now_ns, is_last))
        row[Gauge.SAVE_NS] += self._now_ns() - now_ns

    def _snapshot(self, now_ns: int, is_last: bool) -> Snapshot:
        progress = self._progress
        state = self._group.state(is_last)
        return Snapshot(
            version=self._group.learner.version,
            weights=self._group.weights(),
            state={**state, "progress": progress.state(now_ns), "actors": self._actor_states()},
            facts={
                "env_steps": progress.env_steps,
                "updates": state["updates"],
                "wall_s": progress.wall_s(now_ns),
                "mean_return_100": progress.mean_return if progress.is_rated else None,
            },
        )

    def resume(self, highest_version: int) -> dict[str, Any] | None:
        """Continue from the newest intact checkpoint; return the actors' saved states, if any.

        highest_version: the highest one already published in this session, -1 if none.
        """
        choice = self._of_all(self._choose(highest_version))
        saved = read_checkpoint(choice.path)
        state: Any = saved.state
        buffer = self._adapt_buffer(state["buffer"])
        self._group.load_state(saved.weights, {**state, "buffer": buffer})
        self._progress.load_state(state["progress"])
        version = version_after(self._run_dir, saved.version, highest_version)
        self._group.continue_at(version)
        env_steps = self._progress.env_steps
        self._reports(restored_report(saved.version, env_steps, version, choice))
        actors: dict[str, Any] | None = state["actors"]
        return actors if actors and len(actors) == len(self._group.gauges.actors) else None

    def _choose(self, highest_version: int) -> Choice:
        is_begun = highest_version >= 0 and list_checkpoints(self._run_dir)
        if self._start_from is None or is_begun:
            return latest(self._run_dir)
        return Choice(self._start_from, "")

    def _of_all(self, choice: Choice) -> Choice:
        """Return the newest checkpoint that all groups have, where they make updates together: one
        may have died while it was writing."""
        learner = self._group.learner
        if not isinstance(learner, JoinedLearner):
            return choice
        mine = version_of(choice.path.name) or 0
        newest = oldest_of_all(learner.meeting.peers, mine)
        if newest == mine:
            return choice
        path = choice.path.with_name(folder_name(newest))
        verify(path)
        return Choice(path, f"Another group has no checkpoint {choice.path.name}.")

    def close(self, show_life: Callable[[], None] = lambda: None) -> None:
        """Wait for the last one. show_life: called while this waits."""
        self._writer.close(show_life)


BEFORE_THE_FIRST = -1
"""Version and environment steps of a learner that found no checkpoint and begins anew."""


def version_after(run_dir: Path, saved: int, published: int) -> int:
    """Return the version to continue as. Versions never fall: those published in this session, and
    those that a killed session has written to the folder, are skipped.

    saved: the version of the checkpoint. published: the highest one of this session, -1 if none.
    """
    checkpoints = [version_of(path.name) or 0 for path in list_checkpoints(run_dir)]
    written = max([highest_version(run_dir), *checkpoints])
    return max(saved, published + 1, written + 1 if written > saved else 0)


def restored_report(saved: int, env_steps: int, version: int, choice: Choice) -> RestoredReport:
    """Tell the observer where the run goes back to, and a person what that costs."""
    text = f"{choice.note} Continuing from checkpoint {folder_name(saved)}".lstrip()
    if version > saved:
        text += f" as version {version}; what was learned after that checkpoint is lost"
    record = RestorePoint(version=saved, env_steps=env_steps)
    return RestoredReport(kind="restored", role="learner", text=f"{text}.", record=record)


def begun_anew_report(version: int) -> RestoredReport:
    """Return the report of a learner that died before its first checkpoint."""
    text = f"The learner died before its first checkpoint and begins anew as version {version}."
    record = RestorePoint(version=BEFORE_THE_FIRST, env_steps=BEFORE_THE_FIRST)
    return RestoredReport(kind="restored", role="learner", text=text, record=record)
