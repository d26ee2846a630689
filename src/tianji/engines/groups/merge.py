"""Merges the records of groups into those of their run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import TypeVar

from tianji.channels.gauges import Gauges
from tianji.programs.groups import in_group
from tianji.records import (
    GroupFigures,
    GroupRecord,
    Lag,
    ProgressRecord,
    Rates,
    Ratio,
    RunSession,
    SessionMetrics,
)

T = TypeVar("T")


def prefixed(by_group: Mapping[int, Mapping[str, T]]) -> dict[str, T]:
    """Return values by role in one mapping, with the names that the whole run knows."""
    return {
        in_group(g, name): value for g, some in by_group.items() for name, value in some.items()
    }


def joined_gauges(by_group: Mapping[int, Gauges]) -> Gauges:
    """Return the gauges of all groups as those of one run: the same memory, with other names."""
    kinds = prefixed({group: gauges.kinds for group, gauges in by_group.items()})
    joined = Gauges(kinds)
    joined.rows = prefixed({group: gauges.rows for group, gauges in by_group.items()})
    return joined


def merge_records(groups: Sequence[GroupRecord]) -> GroupRecord:
    """Return where all groups together stand: counts add up, figures are means, and `version` is
    the highest of any group."""
    return GroupRecord(
        updates=sum(group["updates"] for group in groups),
        version=max(group["version"] for group in groups),
        lag_versions=_merge_lags([group["lag_versions"] for group in groups]),
        lag_histogram=[
            sum(counts)
            for counts in zip_longest(*(group["lag_histogram"] for group in groups), fillvalue=0)
        ],
        ratio=Ratio(
            target=groups[0]["ratio"]["target"],
            actual=_mean(group["ratio"]["actual"] for group in groups),
        ),
        discarded_items=sum(group["discarded_items"] for group in groups),
        blocked_inserts=sum(group["blocked_inserts"] for group in groups),
        blocked_s=sum(group["blocked_s"] for group in groups),
        env_failures=sum(group["env_failures"] for group in groups),
        learner={
            name: mean
            for name in dict.fromkeys(name for group in groups for name in group["learner"])
            if (mean := _mean(group["learner"].get(name) for group in groups)) is not None
        },
    )


def merge_learners(figures: Sequence[GroupFigures]) -> list[GroupFigures]:
    """Return one record for each group: counts and rates of its learners add up."""
    by_group: dict[int, list[GroupFigures]] = {}
    for each in figures:
        by_group.setdefault(each["group"], []).append(each)
    return [_merge_group(group, some) for group, some in by_group.items()]


def _merge_group(group: int, learners: Sequence[GroupFigures]) -> GroupFigures:
    merged = GroupFigures(
        group=group,
        env_steps=sum(each["env_steps"] for each in learners),
        rates_per_s=_add_rates([each["rates_per_s"] for each in learners]),
        lag_versions=_merge_lags([each["lag_versions"] for each in learners]),
        updates=sum(each["updates"] for each in learners),
        version=max(each["version"] for each in learners),
        restarts=sum(each["restarts"] for each in learners),
    )
    for each in learners:  # the first learner of a group mixes
        if "peer_age" in each:
            merged["peer_age"] = each["peer_age"]
    return merged


def _add_rates(rates: Sequence[Rates]) -> Rates:
    return Rates(
        produced=sum(rate["produced"] for rate in rates),
        received=sum(rate["received"] for rate in rates),
        trained=sum(rate["trained"] for rate in rates),
        unique_trained=sum(rate["unique_trained"] for rate in rates),
    )


def _merge_lags(lags: Sequence[Lag]) -> Lag:
    highest = [lag["max"] for lag in lags if lag["max"] is not None]
    p95 = [lag["p95"] for lag in lags if lag["p95"] is not None]
    return Lag(
        mean=_mean(lag["mean"] for lag in lags),
        p95=max(p95, default=None),
        max=max(highest, default=None),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def merge_sessions(
    progress: ProgressRecord,
    merged: GroupRecord,
    groups: Mapping[int, SessionMetrics],
    figures: list[GroupFigures],
) -> RunSession:
    """Return the last record of a run: rates add up, shares keep the names of the roles."""
    return RunSession(
        **progress,
        **merged,
        rates_per_s=_add_rates([record["rates_per_s"] for record in groups.values()]),
        busy_s=prefixed({group: record["busy_s"] for group, record in groups.items()}),
        busy_share=prefixed({group: record["busy_share"] for group, record in groups.items()}),
        groups=figures,
    )
