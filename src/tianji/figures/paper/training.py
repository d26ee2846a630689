"""What our data shows in figures 1 and 4: who is idle, returns over time, groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from statistics import fmean

from tianji.figures.estimates import Estimated, few_seeds
from tianji.figures.files import Data, Point
from tianji.figures.groups.summary import (
    DQN,
    PPO,
    by_groups,
    fewest_seeds,
    first_combine,
    median,
    rate_of,
    rated_of,
    simulated_of,
    timed_of,
)
from tianji.figures.paper.record import times, where
from tianji.figures.peers import fastest, trained_beside
from tianji.wording import counted, listed, to_count, to_percent

OURS, APEX = "pong-dqn", "pong-apex"
LOST = -21.0
"""The return of a game of Pong in which no point was won."""
MOST_OF_THE_WAY = 0.9
"""The share of the way to the lowest last return; a run that has learnt wavers around its own."""


def idle_roles(data: Data) -> str:
    """Say how idle actors and learners are in every excerpt of figure 1."""
    parts = [f"{p['name'].partition(':')[0]}: {listed(_idle_by_kind(p))}" for p in data["points"]]
    return f"CartPole ({where(data)}). Idle shares of the whole run: {'; '.join(parts)}."


def _idle_by_kind(point: Point) -> list[str]:
    """Return the idle share of each role, the mean of those that differ only by their number."""
    shares: dict[str, list[float]] = {}
    for row in point["rows"]:
        kind = row["role"].rstrip("0123456789").rstrip("-")
        shares.setdefault(kind, []).append(row["idle_share"])
    return [
        f"{counted(len(some), kind) if len(some) > 1 else kind} {to_percent(fmean(some))}"
        for kind, some in shares.items()
        if kind != "buffer"
    ]


def returns_on_pong(data: Data) -> str:
    """Say what both methods of figure 4 (a) reach, which of them learns faster, and whether that is
    what the paper says. Faster is who first comes most of the way to what all runs end with.
    Few seeds give no verdict."""
    ours, apex = (_final_return(data, preset) for preset in (OURS, APEX))
    lowest = min(_known(run)[-1]["return"] for run in data["points"])
    level = LOST + MOST_OF_THE_WAY * (lowest - LOST)
    soon, late = (_minutes_to(data, preset, level) for preset in (OURS, APEX))
    order = "as in the paper" if soon < late else "the other way round than in the paper"
    return (
        f"After {data['minutes']:g} minutes TianJi's DQN has a mean return of {ours:.1f} and Ape-X "
        f"{apex:.1f}. They reach {level:.1f} after {soon:.1f} and {late:.1f} "
        f"minutes: TianJi is {late / soon:.2f} times as fast ({_verdict(data, order)}; "
        f"{_cores(data)}, {data['gpu'] or 'no GPU'})."
    )


def throughput_on_pong(data: Data) -> str:
    """Say how much both methods of figure 4 (b) train on, and whether that is what the paper
    says."""
    ours, apex = (_settled(data, preset, "trained_per_s") for preset in (OURS, APEX))
    order = "as in the paper" if ours > apex else "the other way round than in the paper"
    steps, others = (_settled(data, preset, "steps_per_s") for preset in (OURS, APEX))
    return (
        f"TianJi's DQN makes {steps:,.0f} environment steps and trains on {ours:,.0f} transitions "
        f"per second, Ape-X makes {others:,.0f} and trains on {apex:,.0f} "
        f"({_verdict(data, order)})."
    )


def _verdict(data: Data, order: str) -> str:
    """Return which method is ahead with the number of seeds; few of them give no verdict."""
    count = len({run["seed"] for run in data["points"]})
    return few_seeds(count) or f"{order}, {counted(count, 'seed')} each"


def _runs(data: Data, preset: str) -> list[Point]:
    return [run for run in data["points"] if run["preset"] == preset]


def _final_return(data: Data, preset: str) -> float:
    return median([_known(run)[-1]["return"] for run in _runs(data, preset)])


def _known(run: Point) -> list[Point]:
    """Return the points of a curve from the first finished game on."""
    return [point for point in run["curve"] if point["return"] is not None]


def _minutes_to(data: Data, preset: str, wanted: float) -> float:
    """Return the median of the times at which the runs first have this return."""
    return median([
        next(point["seconds"] / 60 for point in _known(run) if point["return"] >= wanted)
        for run in _runs(data, preset)
    ])  # fmt: skip


def _settled(data: Data, preset: str, rate: str) -> float:
    return median([run["settled"][rate] for run in _runs(data, preset)])


def _cores(data: Data) -> str:
    cores = min(run["cores"] or data["machine"]["cores"] for run in data["points"])
    return f"{counted(cores, 'core')} for each"


def times_by_groups(data: Data) -> str:
    """Say how long the groups of figure 4 (c) take, and how long other systems took."""
    sentences = [f"{_times(data, PPO, 'PPO')}; {_times(data, DQN, 'DQN')}."]
    peers = fastest(trained_beside(data))
    if peers:
        said = [f"{peer.system} {peer.how_long}" for peer in peers]
        sentences.append(
            f"Other systems on two such cores: {listed(said)} (measured apart, November 2026). "
            "Every system has settings of its own where the paper has the same for all, so that "
            "these ratios are not the paper's."
        )
    else:
        sentences.append("No other system was measured on such a machine.")
    return " ".join([*sentences, gap(data, DQN, "trained")])


def _times(data: Data, preset: str, name: str) -> str:
    """Say how many seeds reached the target, and when, by groups."""
    points = timed_of(data, preset)
    combine = first_combine(points)
    found = by_groups(points, combine, itemgetter("time_to_target_s"))
    said = [f"with {counted(count, 'group')} {_reached(found[count])}" for count in found]
    few = few_seeds(fewest_seeds([point for point in points if point["combine"] == combine]))
    return (
        f"{name} to {data['target']:g} in runs of {_lengths(points)} s "
        f"({', '.join(filter(None, (combine, few)))}): {', '.join(said)}"
    )


def _reached(found: Estimated) -> str:
    """Say how many seeds reached the target, and after which time unless that is never."""
    count = f"{found.reached} of {counted(found.runs, 'seed')}"
    return count if math.isinf(found.value) else f"{count} in {found.text}"


def _lengths(points: Sequence[Point]) -> str:
    """Return the seconds of the runs: `6`, or `5 to 6`."""
    lengths = [point["seconds"] for point in points]
    ends = dict.fromkeys((min(lengths), max(lengths)))
    return " to ".join(f"{seconds:g}" for seconds in ends)


def returns_by_groups(data: Data) -> str:
    """Say what the machines of figure 4 (d) do."""
    return f"{_growth(data, PPO, 'trained', 'train on')} {gap(data, PPO, 'trained')}"


def rates_by_groups(data: Data) -> str:
    """Say how the rates of figure 6 (c) grow with groups."""
    return f"{_growth(data, DQN, 'received', 'receive')} {gap(data, DQN, 'received')}"


def _growth(data: Data, preset: str, rate: str, verb: str) -> str:
    """Say how a rate grows with groups, real and simulated."""
    points = rated_of(data, preset)
    combine = first_combine(points)
    real = by_groups(points, combine, partial(rate_of, rate, 1.0))
    few, many = min(real), max(real)
    rows = {row["nodes"]: row for row in simulated_of(data, preset, combine)}
    eight, most = rows[min(n for n in rows if n >= 8)], rows[max(n for n in rows if n <= 64)]
    return (
        f"Real: {counted(many, 'group')} {verb} {to_count(real[many].value)} steps/s, "
        f"{times(real[many].value / real[few].value)} as many as {counted(few, 'group')} "
        f"({combine}). Simulated: {to_count(eight[rate])} on "
        f"{counted(eight['nodes'], 'machine')}, {to_count(most[rate])} on {most['nodes']}, "
        f"{times(most[rate] / eight[rate])} as many."
    )


def gap(data: Data, preset: str, rate: str) -> str:
    """Say how far real runs are from what is simulated for the same groups and turn, and why."""
    points = rated_of(data, preset)
    combine = first_combine(points)
    most = max(point["groups"] for point in points)
    shares = [
        point["rates"][rate] / row[rate]
        for point in points
        for row in data["simulated_here"]
        if (row["groups"], row["combine"]) == (most, combine)
        if all(point[key] == row[key] for key in ("preset", "groups", "combine", "seed"))
    ]
    reach = "one real run reaches" if len(shares) == 1 else "real runs reach"
    best = "" if len(shares) == 1 else f", the best one {max(shares):.2f}"
    return (
        f"With the same {counted(most, 'group')} on one machine, {reach} "
        f"{median(shares):.2f} of the simulated rate{best}. The "
        "simulation computes with times that were measured right before the runs, and other "
        f"programs change the speed of the machine ({where(data)})."
    )
