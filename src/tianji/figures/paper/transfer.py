"""What our data shows in figure 5 and in equation 1: how fast messages are collected."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tianji.figures.files import Data, Point
from tianji.figures.paper.numbers import ETHERNET_MB_PER_S, FALLING_FROM_BYTES
from tianji.figures.paper.record import times, where
from tianji.figures.peers import channels_beside
from tianji.figures.transports import MESSAGES, OURS, collection_s, size_text
from tianji.wording import to_percent

ONE_SIZE_BYTES = 512 << 10


def sizes(data: Data) -> str:
    """Say how close one actor comes to copying memory, and how far other channels are."""
    alone = [p for p in data["points"] if p["actors"] == 1 and p["sample_time_s"] == 0]
    ours = [p for p in alone if p["transport"] == OURS and not p["copying"]]
    mine = _medians(ours, "size_bytes", "mb_per_s")
    copied = _medians(ours, "size_bytes", "memcpy_mb_per_s")
    text = (
        f"Messages of {size_text(ONE_SIZE_BYTES)} move at {mine[ONE_SIZE_BYTES]:,.0f} MB/s, "
        f"{to_percent(mine[ONE_SIZE_BYTES] / copied[ONE_SIZE_BYTES])} of the speed at which a core "
        f"copies memory ({where(data)})."
    )
    theirs = {
        p["size_bytes"]: p["mb_per_s"]
        for p in channels_beside(data)
        if p["transport"] == "xingtian" and p["actors"] == 1 and p["sample_time_s"] == 0
    }
    if theirs:
        ratios = [mine[size] / speed for size, speed in theirs.items() if size in mine]
        text += (
            f" From {size_text(min(theirs))} to {size_text(max(theirs))} ours has "
            f"{times(min(ratios))} to {times(max(ratios))} the speed of XingTian's channel, whose "
            "receiver copies where ours keeps the slot."
        )
    return text


def actors(data: Data) -> str:
    """Say how far the collection by several actors is from its ideal."""
    return f"{_by_actors(_ours(data))} ({where(data)})."


def hosts(data: Data) -> str:
    return f"{_by_actors(data['points'])} (four network namespaces of one machine: {where(data)})."


def _ours(data: Data) -> list[Point]:
    return [
        p for p in data["points"]
        if p["transport"] == OURS and not p["copying"] and p["size_bytes"] == ONE_SIZE_BYTES
    ]  # fmt: skip


def _by_actors(points: Sequence[Point]) -> str:
    """Say what the most actors take for each sample time, and what the ideal would be."""
    said = []
    for sample_s in sorted({p["sample_time_s"] for p in points} - {0.0}):
        some = [p for p in points if p["sample_time_s"] == sample_s]
        most = max(p["actors"] for p in some)
        found = statistics.median(collection_s(p) for p in some if p["actors"] == most)
        ideal = MESSAGES * sample_s / most
        said.append(
            f"at {sample_s * 1e3:g} ms {most} actors take {found:.1f} s, {times(found / ideal)} "
            "the ideal"
        )
    return f"With a sample time, {'; '.join(said)}"


def link(data: Data) -> str:
    """Say what the lines between two hosts reach."""
    by_line = {
        limit: _medians(
            [p for p in data["points"] if p["limit_gbit"] == limit and p["contestant"] == "link"],
            "size_bytes",
            "mb_per_s",
        )
        for limit in (1.0, None)
    }
    limited, free = by_line[1.0], by_line[None]
    best = max(free, key=lambda size: free[size])
    beyond = [speed for size, speed in free.items() if size > FALLING_FROM_BYTES]
    falls = f", and {beyond[-1]:,.0f} MB/s at {size_text(int(max(free)))}" if beyond else ""
    return (
        f"On a line of {ETHERNET_MB_PER_S:g} MB/s we reach {max(limited.values()):.0f} MB/s; "
        f"without a limit at most {free[best]:,.0f} MB/s, at {size_text(int(best))}{falls} (in "
        f"clear, two network namespaces of one machine: {where(data)})."
    )


def _medians(points: Sequence[Point], along: str, value: str) -> dict[int, float]:
    places = sorted({p[along] for p in points})
    return {at: statistics.median(p[value] for p in points if p[along] == at) for at in places}


def equation(data: Data) -> str:
    """Say how far equation 1 is from the measurement, as printed, divided, and with cores."""
    points = [p for p in data["points"] if not p["is_fitted"]]
    divided = [_error(p, "equation_s_per_10k") for p in points]
    whole = [_error(p, "predicted_s_per_10k") for p in points]
    printed = [p["printed_equation_s_per_10k"] / p["collection_s_per_10k"] for p in points]
    return (
        f"Of {len(points)} settings with several actors that nothing was fitted on, equation 1 "
        f"with its first case divided by the actors is off by {to_percent(_middle(divided))} in "
        f"the median and {to_percent(max(divided))} at most; with a term for shared cores by "
        f"{to_percent(_middle(whole))} and {to_percent(max(whole))}. As printed it gives up to "
        f"{times(max(printed))} the measured time ({where(data)})."
    )


def _error(point: Point, name: str) -> float:
    return abs(float(point[name]) / float(point["collection_s_per_10k"]) - 1.0)


def _middle(values: Sequence[float]) -> float:
    return float(statistics.median(values))
