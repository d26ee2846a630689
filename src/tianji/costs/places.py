"""The speed of a run by the place where inference runs, measured on one machine; kept as a file."""

from __future__ import annotations

from tianji.config.plan import Inference
from tianji.config.schema import Record
from tianji.costs.profile import Rehearsal
from tianji.wording import to_percent


class PlaceTrial(Record):
    """A test run with inference in one place.

    rehearsal: None if it failed; `failure` then says why.
    """

    inference: Inference
    rehearsal: Rehearsal | None = None
    failure: str = ""

    @property
    def rate(self) -> float:
        """Environment steps that the buffer received per second; 0 if the test run failed."""
        return 0.0 if self.rehearsal is None else self.rehearsal.received


class PlaceTrials(Record):
    """The test runs of all places that make sense for a run; at least one did not fail."""

    trials: tuple[PlaceTrial, ...]
    measuring_s: float = 0.0

    @property
    def best(self) -> PlaceTrial:
        """Return the place with the highest rate."""
        return max(self.trials, key=lambda trial: trial.rate)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return the rate of each place and why the best one was taken, then what failed."""
        ranked = sorted((t for t in self.trials if t.rehearsal is not None), key=lambda t: -t.rate)
        best, *others = ranked
        rates = ", ".join(f"{trial.inference} {trial.rate:,.0f}" for trial in others)
        told = f"Inference: {best.inference} {best.rate:,.0f} steps/s"
        if others:
            told += f", {rates}. {_difference(best, others[0])}"
        else:
            told += ", the only place that was measured."
        failures = (
            f"Inference: {trial.inference} was left out, because its test run failed: "
            f"{trial.failure}"
            for trial in self.trials
            if trial.rehearsal is None
        )
        return told, *failures


def _difference(best: PlaceTrial, next_one: PlaceTrial) -> str:
    more = to_percent(best.rate / next_one.rate - 1) if next_one.rate else "far more"
    return (
        f"The run uses {best.inference}, which received {more} more steps/s than "
        f"{next_one.inference} in a test run."
    )
