"""Study: Optuna's side of a sweep. It proposes settings and learns from what trials reached.

It is kept in a file of the sweep's folder, line by line, so that a sweep that was killed continues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from tianji.errors import UsageError
from tianji.sweep.objective import WARM_UP_MARKS, Objective
from tianji.sweep.space import Range, Search

STUDY_FILE = "study.journal"
STUDY = "sweep"
CAUSE, AGAIN = "first_cause", "again"
"""What we note about trials: why one failed, and which interrupted one it repeats."""
TrialState: TypeAlias = Literal["finished", "pruned", "failed"]
_STATES: Mapping[str, TrialState] = {"COMPLETE": "finished", "PRUNED": "pruned", "FAIL": "failed"}


class Proposal(NamedTuple):
    """Settings to try: the number of the trial, and their values as text, by path."""

    number: int
    values: dict[str, str]


class EndedTrial(NamedTuple):
    """A trial that counts."""

    number: int
    state: TrialState
    value: float | None
    values: dict[str, str]
    first_cause: str


class Study:
    """Asks Optuna for settings (TPE), and tells it how they did."""

    def __init__(
        self, folder: Path, searches: Sequence[Search], objective: Objective, seed: int, prune: bool
    ) -> None:
        """prune: whether a trial may end early that is worse than the median at the same mark."""
        optuna = import_optuna()
        self._optuna = optuna
        self._searches = {one.path: one for one in searches}
        storage = optuna.storages.JournalStorage(
            optuna.storages.journal.JournalFileBackend(str(folder / STUDY_FILE))
        )
        median = optuna.pruners.MedianPruner(n_warmup_steps=WARM_UP_MARKS)
        self._study = optuna.create_study(
            study_name=STUDY,
            storage=storage,
            direction=objective.direction,
            pruner=median if prune else optuna.pruners.NopPruner(),
            load_if_exists=True,
        )
        # A session that continues must not draw the same random numbers again.
        drawn = len(self._study.get_trials(deepcopy=False))
        mixed = (seed + 1_000_003 * drawn) % 2**32
        self._study.sampler = optuna.samplers.TPESampler(seed=mixed, constant_liar=True)
        self._going: dict[int, Any] = {}
        self._marks: dict[int, set[int]] = {}
        self._repeat_interrupted()

    def _repeat_interrupted(self) -> None:
        """Propose the settings of trials again that a person or a crash has interrupted."""
        state = self._optuna.trial.TrialState
        for trial in self._study.get_trials(states=(state.RUNNING,)):
            self._study.tell(trial.number, state=state.FAIL)
        trials = self._study.get_trials()
        repeated = {trial.user_attrs.get(AGAIN) for trial in trials}
        for trial in trials:
            is_interrupted = trial.state == state.FAIL and CAUSE not in trial.user_attrs
            if is_interrupted and trial.number not in repeated and trial.params:
                self._study.enqueue_trial(trial.params, user_attrs={AGAIN: trial.number})

    def ask(self) -> Proposal:
        """Return the next settings to try."""
        found = {path: self._distribution(one) for path, one in self._searches.items()}
        trial = self._study.ask(found)
        self._going[trial.number] = trial
        self._marks[trial.number] = set()
        return Proposal(trial.number, self._texts(trial.params))

    def _distribution(self, one: Search) -> Any:
        made = self._optuna.distributions
        if not isinstance(one, Range):
            return made.CategoricalDistribution(one.choices)
        if one.is_whole:
            return made.IntDistribution(int(one.low), int(one.high), log=one.is_log)
        return made.FloatDistribution(one.low, one.high, log=one.is_log)

    def _texts(self, params: Mapping[str, Any]) -> dict[str, str]:
        return {path: self._searches[path].to_text(value) for path, value in params.items()}

    def is_hopeless(self, number: int, marks: Mapping[int, float]) -> bool:
        """Take the values of a trial at its marks; return whether it should end now."""
        trial, is_hopeless = self._going[number], False
        for mark in sorted(marks.keys() - self._marks[number]):
            self._marks[number].add(mark)
            trial.report(marks[mark], mark)
            is_hopeless = is_hopeless or trial.should_prune()
        return is_hopeless

    def tell(self, number: int, value: float) -> None:
        self._study.tell(self._going.pop(number), value)

    def tell_pruned(self, number: int) -> None:
        self._study.tell(self._going.pop(number), state=self._optuna.trial.TrialState.PRUNED)

    def tell_failed(self, number: int, first_cause: str) -> None:
        self._going[number].set_user_attr(CAUSE, first_cause)
        self.tell_interrupted(number)

    def tell_interrupted(self, number: int) -> None:
        """The same settings are proposed again when the sweep continues."""
        self._study.tell(self._going.pop(number), state=self._optuna.trial.TrialState.FAIL)

    def ended(self) -> list[EndedTrial]:
        """Return all trials that count: finished, pruned or failed, not interrupted."""
        return [
            EndedTrial(
                trial.number,
                _STATES[trial.state.name],
                trial.value if trial.state.name == "COMPLETE" else None,
                self._texts(trial.params),
                trial.user_attrs.get(CAUSE, ""),
            )
            for trial in self._study.get_trials()
            if trial.state.name in ("COMPLETE", "PRUNED") or CAUSE in trial.user_attrs
        ]

    def best(self) -> int | None:
        """Return the number of the best finished trial; None if there is none."""
        complete = self._optuna.trial.TrialState.COMPLETE
        found = self._study.get_trials(deepcopy=False, states=(complete,))
        return self._study.best_trial.number if found else None


def import_optuna() -> Any:
    """Import Optuna; UsageError naming the extra where it is missing."""
    try:
        import optuna
        from optuna.storages import journal  # noqa: F401 - not imported by the line above
    except ImportError as error:
        raise UsageError(
            f"`tianji sweep` needs Optuna, which is not installed ({error}). Install it with: "
            "pip install 'tianji[sweep]'"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
