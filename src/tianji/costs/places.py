"""The speed of a run by the place where inference runs, measured on one machine; kept as a file."""

from __future__ import annotations

from tianji.config.plan import IN_STEP, Balance, Inference
from tianji.config.schema import Record
from tianji.costs.profile import Rehearsal
from tianji.wording import to_percent

NEAR_SHARE = 0.10
"""Where actors run ahead, places that received this much less than the best one may be better."""


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

    @property
    def trained(self) -> float:
        """Environment steps trained on per second; 0 if the test run failed."""
        return 0.0 if self.rehearsal is None else self.rehearsal.trained


class PlaceTrials(Record):
    """The test runs of all places that make sense for a run; at least one did not fail.

    balance: of the run. With `paced` and `blocking`, what is trained follows from what is received.
    With the others it does not: a place may give the actors what the learner needs.
    """

    balance: Balance
    trials: tuple[PlaceTrial, ...]
    measuring_s: float = 0.0

    @property
    def best(self) -> PlaceTrial:
        """Return the place with the highest rate; where actors run ahead, the place that trained
        the most of those near the highest rate."""
        return max(self._near, key=lambda trial: trial.trained)

    @property
    def _near(self) -> tuple[PlaceTrial, ...]:
        """Return the places that may be the best."""
        first = max(self.trials, key=lambda trial: trial.rate)
        if self.balance in IN_STEP:
            return (first,)
        least = (1 - NEAR_SHARE) * first.rate
        return tuple(t for t in self.trials if t.rehearsal is not None and t.rate >= least)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return the rate of each place and why the best one was taken, then what failed."""
        best = self.best
        others = sorted(
            (t for t in self.trials if t.rehearsal is not None and t is not best),
            key=lambda t: -t.rate,
        )
        rates = ", ".join(f"{trial.inference} {trial.rate:,.0f}" for trial in others)
        told = f"Inference: {best.inference} {best.rate:,.0f} steps/s"
        if others:
            near = [trial for trial in self._near if trial is not best]
            why = _most_trained(best, near) if near else _difference(best, others[0])
            told += f", {rates}. {why}"
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
    more = "far more"
    if next_one.rate:
        more = f"{to_percent(best.rate / next_one.rate - 1)} more"
    return (
        f"The run uses {best.inference}, which received {more} steps/s than "
        f"{next_one.inference} in a test run."
    )


def _most_trained(best: PlaceTrial, near: list[PlaceTrial]) -> str:
    others = ", ".join(f"{trial.inference} {trial.trained:,.0f}" for trial in near)
    return (
        f"The run uses {best.inference}: its actors do not wait for the learner, and of the places "
        f"that received at most {to_percent(NEAR_SHARE)} less than the best, this one trained the "
        "most, "
        f"{best.trained:,.0f} steps/s ({others})."
    )
