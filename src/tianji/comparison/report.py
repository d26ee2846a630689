"""comparison.json: every run of a comparison, and what all runs of a contestant come to."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypedDict

from tianji.checkpoint.durable import to_plain
from tianji.comparison.bound import lower
from tianji.comparison.contest import Contestant
from tianji.comparison.outcomes import RunFigures, SideFigures, is_finished
from tianji.comparison.provenance import Provenance
from tianji.ops.scores import Estimate, estimate_iqm, probability_of_improvement
from tianji.records import CriticalPath, Rates


class Estimated(TypedDict):
    """A statistic over seeds with its 95 % interval; null where it is infinite, as a time to a
    target that was not reached. The ends are also null with one seed."""

    value: float | None
    low: float | None
    high: float | None
    seeds: int


class LagFigures(TypedDict):
    """Means over the runs, in versions."""

    mean: float | None
    p95: float | None


class ReferenceBetter(TypedDict):
    """The probability that a seed of the reference does better than one of this contestant.

    time_to_target_s: None where no seed of either has reached the target."""

    time_to_target_s: Estimated | None
    final_return: Estimated | None


class StyleFigures(TypedDict):
    """All runs of one contestant that came to their end."""

    style: str
    about: str
    differences: list[str]
    seeds: list[int]
    """Seeds whose runs count."""
    reached: int
    """Runs that reached the target."""
    time_to_target_s: Estimated | None
    """Interquartile mean; None without a target or without runs. The next three likewise."""
    steps_to_target: Estimated | None
    final_return: Estimated | None
    greedy_return: Estimated | None
    """Mean return of the last policies, which play without exploration."""
    reference_is_better: ReferenceBetter | None
    """None for the reference itself."""
    rates_per_s: Rates
    """Mean over the runs, like all that follow."""
    lag_versions: LagFigures
    discarded_items: float
    critical_path: CriticalPath | None
    """The critical path that most runs have."""
    gather_rule: str | None
    """How gradients are gathered; None where actors send experience."""
    actors: SideFigures
    learner: SideFigures
    bound_per_s: float | None
    """Steps per second if nobody ever waited (bound.py); None where no profile is known."""
    share_of_bound: float | None


class Certainty(NamedTuple):
    """How sure it is that the reference does better, and by which figure."""

    by: Literal["time_to_target_s", "final_return"]
    probability: Estimated


class Comparison(Provenance):
    """comparison.json. Its provenance is that of all runs that have come to their end."""

    command: str
    env: str
    target_return: float | None
    reference: str
    """The style that the others are compared with."""
    seeds: list[int]
    others_cores: float
    """Cores that other programs used meanwhile, on average; the most of all sessions."""
    missing: list[str]
    """Runs that have not come to their end: not started, interrupted or failed."""
    styles: list[StyleFigures]
    says: dict[str, list[str]]
    """What each style costs and why, in sentences."""
    notes: list[str]
    """What to keep in mind about all of them."""
    time: str
    """When this was written, ISO 8601."""
    run_dir: str
    picture: str | None
    settings: dict[str, Any]
    """The config of each style, without seed and run."""
    origins: dict[str, Provenance]
    """What made each run, by its name; also of runs that have not come to their end."""
    runs: list[RunFigures]


def style_figures(
    contestants: Sequence[Contestant], runs: Sequence[RunFigures]
) -> list[StyleFigures]:
    """Sum up the runs of each contestant; the first one is the reference."""
    of_style = {
        one.name: [run for run in runs if run["style"] == one.name and is_finished(run)]
        for one in contestants
    }
    reference = of_style[contestants[0].name]
    return [
        _sum_up(one, of_style[one.name], None if one is contestants[0] else reference)
        for one in contestants
    ]


def _sum_up(
    contestant: Contestant, runs: Sequence[RunFigures], reference: Sequence[RunFigures] | None
) -> StyleFigures:
    has_target = contestant.config.target_return is not None
    rates = _mean_rates(runs)
    bound = _mean([lower(run["bound"]) for run in runs if run["bound"] is not None])
    return StyleFigures(
        style=contestant.name,
        about=contestant.about,
        differences=list(contestant.differences),
        seeds=sorted(run["seed"] for run in runs),
        reached=sum(run["time_to_target_s"] is not None for run in runs),
        time_to_target_s=_iqm(_times(runs)) if has_target else None,
        steps_to_target=_iqm(_steps(runs)) if has_target else None,
        final_return=_iqm(_returns(runs)),
        greedy_return=_iqm(_known(run["greedy_return"] for run in runs)),
        reference_is_better=None if reference is None else _better(reference, runs, has_target),
        rates_per_s=rates,
        lag_versions=LagFigures(
            mean=_mean([run["lag_versions"]["mean"] for run in runs]),
            p95=_mean([run["lag_versions"]["p95"] for run in runs]),
        ),
        discarded_items=_mean([run["discarded_items"] for run in runs]) or 0.0,
        critical_path=statistics.mode(run["critical_path"] for run in runs) if runs else None,
        gather_rule=runs[0]["gather_rule"] if runs else None,
        actors=_mean_side([run["actors"] for run in runs]),
        learner=_mean_side([run["learner"] for run in runs]),
        bound_per_s=bound,
        share_of_bound=rates["produced"] / bound if bound else None,
    )


def certainty(one: StyleFigures) -> Certainty | None:
    """Return how sure it is that the reference is better: sooner at the target if runs reach it,
    else with a higher return. None for the reference, and without runs of both."""
    better = one["reference_is_better"]
    if better is None:
        return None
    by_time, by_return = better["time_to_target_s"], better["final_return"]
    if by_time is not None:
        return Certainty("time_to_target_s", by_time)
    return None if by_return is None else Certainty("final_return", by_return)


def _times(runs: Sequence[RunFigures]) -> list[float]:
    """Return infinity for a target that was not reached."""
    times = (run["time_to_target_s"] for run in runs)
    return [math.inf if time is None else time for time in times]


def _steps(runs: Sequence[RunFigures]) -> list[float]:
    steps = (run["steps_to_target"] for run in runs)
    return [math.inf if count is None else count for count in steps]


def _returns(runs: Sequence[RunFigures]) -> list[float]:
    """Leave out runs in which no episode has finished."""
    return _known(run["mean_return_100"] for run in runs)


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _better(
    reference: Sequence[RunFigures], runs: Sequence[RunFigures], has_target: bool
) -> ReferenceBetter:
    shorter = [-time for time in _times(reference)], [-time for time in _times(runs)]
    is_reached = any(math.isfinite(time) for time in (*shorter[0], *shorter[1]))
    return ReferenceBetter(
        time_to_target_s=_probability(*shorter) if has_target and is_reached else None,
        final_return=_probability(_returns(reference), _returns(runs)),
    )


def _iqm(scores: Sequence[float]) -> Estimated | None:
    return _estimated(estimate_iqm([scores]), len(scores)) if scores else None


def _probability(first: Sequence[float], second: Sequence[float]) -> Estimated | None:
    if not first or not second:
        return None
    found = probability_of_improvement([first], [second])
    return _estimated(found, min(len(first), len(second)))


def _estimated(found: Estimate, num_seeds: int) -> Estimated:
    value, low, high = (None if end is None else to_plain(end) for end in found)
    return Estimated(value=value, low=low, high=high, seeds=num_seeds)


def _mean(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return statistics.fmean(known) if known else None


def _mean_rates(runs: Sequence[RunFigures]) -> Rates:
    rates = [run["rates_per_s"] for run in runs]
    return Rates(
        produced=_mean([of_run["produced"] for of_run in rates]) or 0.0,
        received=_mean([of_run["received"] for of_run in rates]) or 0.0,
        trained=_mean([of_run["trained"] for of_run in rates]) or 0.0,
        unique_trained=_mean([of_run["unique_trained"] for of_run in rates]) or 0.0,
    )


def _mean_side(sides: Sequence[SideFigures]) -> SideFigures:
    known = [side for side in sides if side["busy_share"] is not None]
    causes = dict.fromkeys(cause for side in known for cause in side["waited_share"])
    return SideFigures(
        busy_share=_mean([side["busy_share"] for side in known]),
        waited_share={
            cause: _mean([side["waited_share"].get(cause, 0.0) for side in known]) or 0.0
            for cause in causes
        },
    )
