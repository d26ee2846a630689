"""Head: makes one run out of several groups.

Takes      reports and gauges of every group
Gives      the run's records to the observer, sets of checkpoints, and when the run is over
Waits for  nothing: a group that is slow or silent is left behind
Unblocked  by the engines of the groups, which call it from one thread
Stops      when the run has reached a target or a limit; the engines then end their groups

Progress, targets, limits and schedules are those of the whole run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial

from tianji.channels.gauges import Gauge, Gauges
from tianji.checkpoint.schema import version_of
from tianji.checkpoint.sets import (
    CheckpointSet,
    SavedGroups,
    add_set,
    group_folder,
    newest_of_groups,
)
from tianji.engines.groups.merge import (
    joined_gauges,
    merge_learners,
    merge_records,
    merge_sessions,
    prefixed,
)
from tianji.engines.groups.observer import GroupObserver
from tianji.engines.groups.progress import EpisodeMerge, RunCount
from tianji.engines.groups.specs import restored_words
from tianji.engines.interface import Observer, Outcome
from tianji.engines.spec import RunSpec
from tianji.learner.progress import Progress
from tianji.observe.watch import Watch
from tianji.programs.groups import in_group
from tianji.programs.program import SUPERVISOR
from tianji.records import (
    NO_RATES,
    GroupFigures,
    GroupRecord,
    LearnerMetrics,
    Rates,
    RunMetrics,
    SessionMetrics,
    StoppedBecause,
)
from tianji.reports import (
    EpisodesReport,
    Event,
    FinishedEpisodes,
    MetricsReport,
    Report,
    RestoredReport,
    RestorePoint,
)
from tianji.types import Clock, Episode


class Head:
    """`take` and `watch` are called for what the engines of the groups tell, `look` often."""

    def __init__(
        self,
        spec: RunSpec,
        saved: SavedGroups | None,
        observer: Observer,
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        """saved: where the run continues; None: it is new."""
        self._run_dir = spec.run_dir
        self._config = spec.config
        self._num_learners = count = spec.config.num_learners
        self._observer = observer
        self._now_ns = now_ns
        self._period_ns = int(spec.config.observe.period_s * 1e9)
        self.progress = Progress(spec.config)
        self.steps, self._updates = (RunCount([0] * count, 0) for _ in range(2))
        self._version = 0
        if saved is not None:
            found, each = saved.found, spec.config.learners_per_group
            sources = [saved.source_of(learner, each) for learner in range(count)]
            self.progress.load_state(found.progress)
            self.steps = RunCount([saved.group_steps[g] for g in sources], found.env_steps)
            self._updates = RunCount([saved.group_updates[g] for g in sources], found.updates)
            self._version = found.version
            self._tell_restored(saved)
        self._episodes = EpisodeMerge(count, now_ns())
        self._gauges: dict[int, Gauges] = {}
        self._pids: dict[int, dict[str, int]] = {}
        self._watches: dict[int, Watch] = {}
        self._joined: Gauges | None = None
        self._records: dict[int, LearnerMetrics] = {}
        self._expected = set(range(count))
        """Groups that have not failed."""
        self._restarts = [0] * count
        self._last_record_ns = self._next_record_ns = 0

    # What the groups tell.

    def observer_of(self, group: int) -> GroupObserver:
        """Return an observer whose calls come straight here."""
        return GroupObserver(partial(self.take, group), partial(self.watch, group))

    def watch(self, group: int, gauges: Gauges, pids: Mapping[str, int]) -> None:
        """Take the gauges of a group and the processes of its workers, at every change."""
        self._pids[group] = dict(pids)
        if self._gauges.get(group) is not gauges:
            self._gauges[group] = gauges
            self._watches[group] = Watch(gauges, self._now_ns)
            if len(self._gauges) == self._num_learners:
                self._joined = joined_gauges(dict(sorted(self._gauges.items())))
        if self._joined is not None:
            self._observer.watch(self._joined, prefixed(self._pids), self._now_ns)

    def take(self, group: int, report: Report) -> None:
        """Take a report of a group's role."""
        if report["kind"] == "metrics":
            self._records[group] = report["record"]
            self._last_record_ns = self._now_ns()
        elif report["kind"] == "episodes":
            record = report["record"]
            episodes = [Episode(*episode) for episode in record["episodes"]]
            self._episodes.add(group, record["until_ns"], episodes, self._now_ns())
        elif report["kind"] == "built":
            if group == 0:
                self._observer.report(report)
        elif report["kind"] == "restored":
            self._note(group, report.get("role", ""), report["text"])
        elif report["kind"] != "done":
            self._pass_on(group, report)
            if report["kind"] == "restart":
                self._restarts[group] += 1
            elif report["kind"] == "checkpoint_written":
                now_ns = self._now_ns()
                self._count(self._episodes.ready(now_ns))
                self._save_set(now_ns)

    def _pass_on(self, group: int, report: Report) -> None:
        report["role"] = in_group(group, report.get("role", ""))
        self._observer.report(report)

    def _note(self, group: int, role: str, text: str) -> None:
        self._pass_on(group, Event(kind="note", role=role, text=text))

    def leave_out(self, group: int) -> None:
        """Make records of the run without a group that has failed."""
        self._expected.discard(group)

    def tell(self, text: str) -> None:
        """Show a sentence about the run as a whole."""
        self._observer.report(Event(kind="note", role=SUPERVISOR, text=text))

    # What the run is told.

    def look(self) -> StoppedBecause | None:
        """Bring the run's figures up to date; return why the run is over, if it is."""
        now_ns = self._now_ns()
        self._count(self._episodes.ready(now_ns))
        has_all = self._joined is not None and self._expected <= self._records.keys()
        if has_all and self._records and now_ns >= self._next_record_ns:
            self._next_record_ns = now_ns + self._period_ns
            self._keep_folders()
            self._report(now_ns)
        self._observer.tick()
        return self.progress.stop_reason(now_ns)

    def _keep_folders(self) -> None:
        """Make the groups' folders again, where the run's folder was deleted and made again."""
        for group in range(self._num_learners):
            folder = group_folder(self._run_dir, group)
            if not folder.is_dir() and self._run_dir.is_dir():
                folder.mkdir(parents=True, exist_ok=True)

    def _count(self, episodes: list[Episode]) -> None:
        if episodes:
            finished = FinishedEpisodes(until_ns=self._now_ns(), episodes=[*episodes])
            self._observer.report(EpisodesReport(kind="episodes", role=SUPERVISOR, record=finished))
        rows = {group: gauges.the("learner") for group, gauges in self._gauges.items()}
        self.steps.see(
            [rows[g][Gauge.ENV_STEPS] if g in rows else 0 for g in range(self._num_learners)]
        )
        self.progress.add(episodes, self.steps.total - self.progress.env_steps)
        if not self.progress.started_ns:
            begun = [watch.first_step_ns() for watch in self._watches.values()]
            self.progress.started_ns = min(filter(None, begun), default=0)

    def _report(self, now_ns: int) -> None:
        for watch in self._watches.values():
            watch.look()
        rates = {g: watch.now().measured["rates_per_s"] for g, watch in self._watches.items()}
        record: RunMetrics = {
            **self.progress.record(now_ns),
            **self._merged(self._records),
            "groups": self._figures(self._records, rates),
        }
        self._observer.report(MetricsReport(kind="metrics", role=SUPERVISOR, record=record))

    def _merged(self, records: Mapping[int, LearnerMetrics]) -> GroupRecord:
        """Return where all groups together stand; counts and versions never fall."""
        merged = merge_records([records[group] for group in sorted(records)])
        self._updates.see(
            [records[g]["updates"] if g in records else 0 for g in range(self._num_learners)]
        )
        self._version = max(self._version, merged["version"])
        return {**merged, "updates": self._updates.total, "version": self._version}

    def _figures(
        self, records: Mapping[int, LearnerMetrics], rates: Mapping[int, Rates]
    ) -> list[GroupFigures]:
        return merge_learners(
            [
                self._learner_figures(learner, records[learner], rates.get(learner, NO_RATES))
                for learner in sorted(records)
            ]
        )

    def _learner_figures(self, learner: int, record: LearnerMetrics, rates: Rates) -> GroupFigures:
        figures = GroupFigures(
            group=learner // self._config.learners_per_group,
            env_steps=self.steps.by_group[learner],
            rates_per_s=rates,
            lag_versions=record["lag_versions"],
            updates=record["updates"],
            version=record["version"],
            restarts=self._restarts[learner],
        )
        if "peer_age" in record:
            figures["peer_age"] = record["peer_age"]
        return figures

    def _save_set(self, now_ns: int) -> None:
        """Write which checkpoints belong together: the newest of each group, once all have one."""
        newest = newest_of_groups(self._run_dir, self._num_learners)
        if newest is None:
            return
        names = tuple(str(path.relative_to(self._run_dir)) for path in newest)
        versions = (version_of(path.name) or 0 for path in newest)
        made = CheckpointSet(
            names,
            version=max(self._version, *versions),
            updates=self._updates.total,
            env_steps=self.steps.total,
            progress=self.progress.state(now_ns),
            learners_per_group=self._config.learners_per_group,
        )
        try:
            add_set(self._run_dir, made)
        except OSError as error:
            text = f"The set of checkpoints could not be written: {error}"
            self._observer.report(Event(kind="checkpoint_failed", role=SUPERVISOR, text=text))

    def _tell_restored(self, saved: SavedGroups) -> None:
        found = saved.found
        text = f"{saved.note} {restored_words(saved, self._config)}".strip()
        self._observer.report(
            RestoredReport(
                kind="restored",
                role=SUPERVISOR,
                text=text,
                record=RestorePoint(version=found.version, env_steps=found.env_steps),
            )
        )

    def outcome(self, because: StoppedBecause, ended: Mapping[int, Outcome]) -> Outcome:
        """Return the end of the run. because: why it was stopped."""
        now_ns = self._last_record_ns or self._now_ns()  # ending the processes is no training
        now_ns = max(now_ns, self._next_record_ns - self._period_ns)
        self._count(self._episodes.rest())
        records = {group: end["record"] for group, end in sorted(ended.items())}
        known: dict[int, SessionMetrics] = {g: r for g, r in records.items() if r is not None}
        rates = {group: record["rates_per_s"] for group, record in known.items()}
        whole: SessionMetrics | None = None
        if known:
            figures = self._figures(known, rates)
            progress, merged = self.progress.record(now_ns), self._merged(known)
            whole = merge_sessions(progress, merged, known, figures)
            self._observer.report(MetricsReport(kind="metrics", role=SUPERVISOR, record=whole))
        self._save_set(now_ns)
        causes = [in_group(g, end["first_cause"]) for g, end in ended.items() if end["first_cause"]]
        return Outcome(
            because=because,
            record=whole,
            restarts=sum(end["restarts"] for end in ended.values()),
            first_cause=causes[0] if causes else None,
            links={n: link for end in ended.values() for n, link in end.get("links", {}).items()},
        )
