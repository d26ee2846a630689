"""The learner's side of a run: buffer and learner, with their checkpoints and reports.

One object in the inline engine's process, or the learner's worker of the other engines.

Takes      unrolls from the actors
Gives      policy versions, checkpoints, reports
Waits for  nothing
Unblocked  by arrivals
Stops      when the run has reached what it was asked for, or is told to
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tianji.algorithms.interface import Update
from tianji.algorithms.registry import load_algorithm
from tianji.buffer.regroup import regrouped
from tianji.channels.board import board_bytes
from tianji.channels.contributions import contribution_bytes
from tianji.channels.gauges import CARRIED, Activity, Gauge, Gauges
from tianji.channels.interface import Batches, BoardWriter, Receiver
from tianji.channels.layout import Layout
from tianji.channels.memory import to_pages
from tianji.checkpoint.load import latest, read_checkpoint
from tianji.checkpoint.schema import Snapshot as Saved
from tianji.checkpoint.writer import Writer
from tianji.engines.build import build_buffer, spans_of
from tianji.engines.gradients import MakeAdding, gather_of, num_parameters, published
from tianji.engines.interface import Report, Reports
from tianji.engines.loop import timed_tick
from tianji.engines.model import build_model
from tianji.engines.restored import restored_report, version_after
from tianji.engines.spec import RunSpec
from tianji.learner.role import Learner
from tianji.observe.progress import Progress
from tianji.trace.parts import trace_batches, trace_update, trace_writer
from tianji.trace.spans import Kind
from tianji.types import Clock

CUT_SHORT = "The version in work ends with the updates made so far, so that the run can stop."
ActorStates = Callable[[], dict[str, Any] | None]
"""The actors' states for an exact resume, or None where they are out of reach."""


class LearnerSide:
    """`tick` moves buffer and learner on; between versions it saves and reports."""

    def __init__(
        self,
        spec: RunSpec,
        receiver: Receiver,
        make_policy: Callable[[int], BoardWriter],
        make_adding: MakeAdding,
        gauges: Gauges,
        reports: Reports,
        actor_states: ActorStates,
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        """make_policy, make_adding: the channels, once the size of the model is known."""
        config = spec.config
        self._spec = spec
        self._reports = reports
        self._actor_states = actor_states
        self._now_ns = now_ns
        self._gauges = gauges
        self._row = gauges.rows["learner"]
        self._buffer_row = gauges.rows["buffer"]
        self._buffer_row[Gauge.ACTIVITY] = Activity.RECEIVING
        self._actor_rows = [row for name, row in gauges.rows.items() if name.startswith("actor-")]
        self._model = build_model(spec)
        self._update = load_algorithm(config.algorithm.name).build_update(
            self._model, spec.spaces, config
        )
        snapshot = published(spec, self._model, self._update)
        policy = make_policy(snapshot.nbytes)
        self.progress = Progress(config)
        buffer_spans = spans_of(spec, "buffer")
        self.spans = spans_of(spec, "learner")
        self.buffer = build_buffer(
            spec,
            receiver,
            self.progress,
            self._buffer_row,
            self._actor_rows,
            buffer_spans,
            now_ns,
            make_adding,
            num_parameters(self._model),
        )
        update: Update = self._update
        batches: Batches = self.buffer
        self._save = self._save_now
        if self.spans is not None and buffer_spans is not None:
            update, batches = trace_update(update, self.spans), trace_batches(batches, buffer_spans)
            policy = trace_writer(policy, self.spans)
            self._save = self.spans.timed(self._save_now, Kind.SAVE)
        self.learner = Learner(
            update,
            batches,
            policy,
            snapshot.write_to,
            lambda: self.progress.fraction,
            self._row,
            now_ns,
        )
        self._writer = Writer(spec.run_dir, config.checkpoint.keep_last, self._on_checkpoint)
        self._next_save_ns = self._next_report_ns = 0
        self._trained_before = 0, 0
        self._policy_bytes = board_bytes(snapshot.nbytes)
        self._is_cut_short = False

    def start(self) -> None:
        """Publish the first version, which starts the actors; save it, so that there is always
        something to go back to."""
        self._trained_before = self._row[Gauge.STEPS], self._row[Gauge.UNIQUE_STEPS]
        built = {"policy_board_bytes": to_pages(self._policy_bytes)}
        if gather_of(self._spec) is not None:
            one = board_bytes(contribution_bytes(num_parameters(self._model)))
            built["sum_boards_bytes"] = self._spec.plan.num_actors * to_pages(one)
        self._reports(Report(kind="built", role="learner", record=built))
        self.learner.publish()
        now_ns = self._now_ns()
        self._save(now_ns)
        self._next_report_ns = now_ns

    def tick(self) -> bool:
        worked = timed_tick(self.buffer, self._buffer_row, self._now_ns)
        if timed_tick(self.learner, self._row, self._now_ns):
            worked = True
            if self.learner.is_between_versions:
                self._after_version(self._now_ns())
        elif not worked:
            self._while_waiting(self._now_ns())
        return worked

    @property
    def due_ns(self) -> int:
        """When there is something to do although nothing arrives; 0: never."""
        return self.buffer.due_ns

    def _while_waiting(self, now_ns: int) -> None:
        """A round that waits for somebody makes no versions, and yet there is something to say."""
        for text in self.buffer.news():
            self._reports(Report(kind="note", role="buffer", text=text))
            self._report(now_ns)

    def _after_version(self, now_ns: int) -> None:
        is_report_due = now_ns >= self._next_report_ns
        # A look at the disk may take a while, and there may be thousands of versions a second.
        if now_ns >= self._next_save_ns or (is_report_due and self._writer.finds_loss()):
            self._save(now_ns)
        if is_report_due:
            self._report(now_ns)

    def _report(self, now_ns: int) -> None:
        self._next_report_ns = now_ns + int(self._spec.config.observe.period_s * 1e9)
        self._reports(Report(kind="metrics", role="learner", record=self.record(now_ns)))

    def stop_reason(self) -> str | None:
        """Why the run is over, asked between versions and while idle."""
        if not self.learner.is_between_versions:
            return None
        self._note_first_step()
        return self.progress.stop_reason(self._now_ns())

    def cut_short(self) -> None:
        """End the version in work with the updates that were made: a stop cannot wait for it."""
        if not self._is_cut_short:
            self._is_cut_short = True
            self.learner.cut_short()
            self._reports(Report(kind="note", role="learner", text=CUT_SHORT))

    def _note_first_step(self) -> None:
        if not self.progress.started_ns:
            begun = [row[Gauge.FIRST_STEP_NS] for row in self._actor_rows]
            self.progress.started_ns = min(filter(None, begun), default=0)

    def record(self, now_ns: int) -> dict[str, Any]:
        """Where the run stands, as the learner's side knows it."""
        self._note_first_step()
        progress, buffer = self.progress, self.buffer
        return {
            "wall_s": progress.wall_s(now_ns),
            "env_steps": progress.env_steps,
            "updates": self._row[Gauge.UPDATES],
            "version": self.learner.version,
            "episodes": progress.episodes,
            "mean_return_100": progress.mean_return,
            "returns_by_env": progress.returns_by_env(),
            "time_to_target_s": progress.time_to_target_s(),
            "best_mean_return_100": progress.best_mean_return,
            "lag_versions": buffer.lag.summary(),
            "lag_histogram": buffer.lag.counts(),
            "ratio": {
                "target": self._spec.plan.ratio,
                "actual": buffer.items_taken / max(1, buffer.items_put),
            },
            "discarded_items": buffer.discarded,
            "env_failures": sum(row[Gauge.ENV_FAILURES] for row in self._actor_rows),
            "learner": {**self.learner.metrics, **buffer.metrics()},
            **buffer.record(),
        }

    def _whole_session(self, now_ns: int) -> dict[str, Any]:
        elapsed_ns = max(1, now_ns - (self.progress.started_ns or now_ns))
        trained, unique = self._trained_before
        totals = {
            "produced": sum(row[Gauge.STEPS] for row in self._actor_rows),
            "received": self._buffer_row[Gauge.RECEIVED_STEPS],
            "trained": self._row[Gauge.STEPS] - trained,
            "unique_trained": self._row[Gauge.UNIQUE_STEPS] - unique,
        }
        busy = {name: row[Gauge.BUSY_NS] for name, row in self._gauges.rows.items()}
        return {
            "rates_per_s": {name: steps / elapsed_ns * 1e9 for name, steps in totals.items()},
            "busy_s": {name: ns / 1e9 for name, ns in busy.items()},
            "busy_share": {name: min(1.0, ns / elapsed_ns) for name, ns in busy.items()},
        }

    def _save_now(self, now_ns: int) -> None:
        self._row[Gauge.ACTIVITY] = Activity.SAVING
        self._next_save_ns = now_ns + int(self._spec.config.checkpoint.period_s * 1e9)
        self._writer.submit(self._snapshot(now_ns))
        self._row[Gauge.SAVE_NS] += self._now_ns() - now_ns

    def _snapshot(self, now_ns: int) -> Saved:
        """Copies of everything, so that the writer's thread can take its time."""
        progress = self.progress
        return Saved(
            version=self.learner.version,
            weights={k: v.detach().clone() for k, v in self._model.state_dict().items()},
            state={
                "update": self._update.state(),
                "buffer": self.buffer.state(),
                "progress": progress.state(now_ns),
                "actors": self._actor_states(),
                "updates": self._row[Gauge.UPDATES],
                "trained_steps": self._row[Gauge.STEPS],
                "unique_steps": self._row[Gauge.UNIQUE_STEPS],
            },
            facts={
                "env_steps": progress.env_steps,
                "updates": self._row[Gauge.UPDATES],
                "wall_s": progress.wall_s(now_ns),
                "mean_return_100": progress.mean_return if progress.is_rated else None,
            },
        )

    def _on_checkpoint(self, kind: str, text: str) -> None:
        self._reports(Report(kind=kind, role="learner", text=text))

    def resume(self, highest_version: int) -> dict[str, Any] | None:
        """Go on from the newest sound checkpoint; returns the actors' saved states, if any.

        highest_version: the highest one already published in this session, -1 if none.
        """
        choice = latest(self._spec.run_dir)
        saved = read_checkpoint(choice.path)
        self._model.load_state_dict(dict(saved.weights))
        state: Any = saved.state
        self._update.load_state(state["update"])
        self.buffer.load_state(self._for_these_actors(state["buffer"]))
        self.progress.load_state(state["progress"])
        self._carry_over(Gauge.UPDATES, state["updates"])
        self._carry_over(Gauge.STEPS, state["trained_steps"])
        self._carry_over(Gauge.UNIQUE_STEPS, state["unique_steps"])
        version = version_after(self._spec.run_dir, saved.version, highest_version)
        self.continue_at(version)
        env_steps = self.progress.env_steps
        self._reports(restored_report(saved.version, env_steps, version, choice))
        actors: dict[str, Any] | None = state["actors"]
        return actors if actors and len(actors) == self._spec.plan.num_actors else None

    def _carry_over(self, gauge: Gauge, count: int) -> None:
        """Set a count, and say how much of it is not from here: no rate may count it."""
        self._row[CARRIED[gauge]] += count - self._row[gauge]
        self._row[gauge] = count

    def _for_these_actors(self, saved: dict[str, Any]) -> dict[str, Any]:
        """The buffer's state, also where it was saved with more actors or fewer."""
        plan = self._spec.plan
        axes = Layout.from_json(plan.layout).env_axes()
        return regrouped(saved, plan.num_actors, plan.envs_per_actor, axes, plan.replay_unrolls)

    def continue_at(self, version: int) -> None:
        """The next version to publish; versions never fall."""
        self.learner.version = version
        self.buffer.continue_at(version)

    def close(self, save: bool) -> dict[str, Any]:
        """Write the last checkpoint, wait for it, and return the last record, with the rates and
        shares of the whole session."""
        now_ns = self._now_ns()
        record = {**self.record(now_ns), **self._whole_session(now_ns)}
        self._reports(Report(kind="metrics", role="learner", record=record))
        if save and self.learner.is_between_versions:
            self._save(self._now_ns())
        self._writer.close(self._show_life)
        return record

    def _show_life(self) -> None:
        for row in (self._row, self._buffer_row):
            row[Gauge.HEARTBEAT_NS] = self._now_ns()
