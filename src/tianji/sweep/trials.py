"""The trials of a sweep as runs: made when cores are free, ended early when they are hopeless."""

from __future__ import annotations

from pathlib import Path

from tianji.comparison.folder import set_aside
from tianji.config.run import RunConfig
from tianji.display.curve import to_points
from tianji.errors import UsageError
from tianji.observe.run_log import all_metrics
from tianji.records import Summary
from tianji.run_folder.paths import TRIAL_PREFIX
from tianji.seeds.one import ChildRun
from tianji.seeds.train import planned_by_rule
from tianji.sweep.objective import MARKS, returns_at_marks
from tianji.sweep.report import trial_dir
from tianji.sweep.request import SweepRequest
from tianji.sweep.study import Proposal, Study

NO_EPISODE = "no episode has finished, so there is no return"


class Trials:
    """Gives the next trial to whoever has cores for it (seeds.run_all.Source)."""

    def __init__(
        self, request: SweepRequest, study: Study, folder: Path, num_left: int, by_rule: bool
    ) -> None:
        """num_left: trials to run. by_rule: plan without measuring, because trials that measure at
        the same time would disturb each other."""
        self.runs: list[ChildRun] = []
        self._request = request
        self._study = study
        self._folder = folder
        self._num_left = num_left
        self._by_rule = by_rule
        self._going: dict[int, ChildRun] = {}
        self._steps: dict[int, int] = {}
        """Environment steps of a trial when it was last compared."""
        self._pruned: set[int] = set()

    def next(self) -> ChildRun | None:
        self.look()  # the sampler shall know what has just ended
        while self._num_left > 0:
            self._num_left -= 1
            proposal = self._study.ask()
            try:
                config = self._request.with_values(proposal.values)
            except UsageError as error:  # each value is allowed, but not all of them together
                self._study.tell_failed(proposal.number, str(error))
                continue
            return self._run(proposal, config)
        return None

    def _run(self, proposal: Proposal, config: RunConfig) -> ChildRun:
        set_aside(trial_dir(self._folder, proposal.number))
        config = planned_by_rule(config) if self._by_rule else config
        name = f"{TRIAL_PREFIX}{proposal.number}"
        observe = config.observe.model_copy(update={"display": "plain"})
        config = config.model_copy(update={"run": name, "observe": observe})
        run = ChildRun(config, self._folder, f"trial {proposal.number}")
        self.runs.append(run)
        self._going[proposal.number] = run
        return run

    def look(self) -> None:
        """Compare the trials that run with others, and tell the study of those that have ended."""
        for number, run in [*self._going.items()]:
            if run.is_running:
                self._compare(number, run)
            elif run.is_started:
                del self._going[number]
                self._is_hopeless(number, run)  # later trials are compared with all its marks
                self._settle(number, run.summary())

    def _compare(self, number: int, run: ChildRun) -> None:
        record = run.record()
        if record is None or number in self._pruned:
            return
        if record["env_steps"] < self._steps.get(number, 0) + run.config.max_env_steps * MARKS[0]:
            return
        self._steps[number] = record["env_steps"]
        if self._is_hopeless(number, run):
            self._pruned.add(number)
            run.ask_to_stop()

    def _is_hopeless(self, number: int, run: ChildRun) -> bool:
        found = returns_at_marks(to_points(all_metrics(run.folder)), run.config.max_env_steps)
        values = {mark: self._request.objective.at_mark(mean) for mark, mean in found.items()}
        return self._study.is_hopeless(number, values)

    def _settle(self, number: int, summary: Summary) -> None:
        because, value = summary["stopped_because"], self._request.objective.value(summary)
        if because == "failed":
            self._study.tell_failed(number, summary["first_cause"])
        elif because == "interrupted" and number in self._pruned:
            self._study.tell_pruned(number)
        elif because == "interrupted" and "stop_reason" not in summary:
            self._study.tell_interrupted(number)
        elif value is None:
            self._study.tell_failed(number, NO_EPISODE)
        else:
            self._study.tell(number, value)
