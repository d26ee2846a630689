"""The experiment over sizes, numbers of actors and sample times, beside what the model predicts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from tianji.bench.experiment import idle_share, measure, measure_loaded
from tianji.bench.point import Point
from tianji.bench.prediction import Measurement, Model, runs_at_once, worst_error
from tianji.wording import to_percent

SIZES = (4 << 10, 16 << 10, 64 << 10, 256 << 10, 512 << 10, 2 << 20, 8 << 20)
FIGURE_SIZE = 512 << 10
ACTORS = (1, 2, 4)
SAMPLE_TIMES_S = (0.001, 0.010)
MANY_ACTORS = (1, 2, 4, 8, 16)
# About how long one point of the sweep takes: what 10,000 messages take is scaled from it.
POINT_S = 0.5
# Guesses, for the number of messages that fill that time.
COPY_BYTES_PER_S, MESSAGES_PER_S = 10e9, 300_000


def measure_sizes(sizes: Sequence[int] = SIZES, point_s: float = POINT_S) -> list[Measurement]:
    """One actor without a sample time, by message size: figure 5 (a) of the paper."""
    return [measure(make_point(size, 1, 0.0, point_s)) for size in sizes]


def measure_actors(
    actors: Sequence[int] = MANY_ACTORS, point_s: float = POINT_S
) -> list[Measurement]:
    """512 KB by number of actors and sample time: figure 5 (b) of the paper."""
    times = (0.0, *SAMPLE_TIMES_S)
    return [measure(make_point(FIGURE_SIZE, n, t, point_s)) for t in times for n in actors]


def sweep(say: Callable[[str], object], point_s: float = POINT_S) -> dict[str, Any]:
    """Everything, with the model fitted on one actor and held against all others."""
    points: list[Measurement] = []
    todo = settings()
    for number, (size, n, sample_s) in enumerate(todo, 1):
        say(f"{number} of {len(todo)}: {size} bytes, actors: {n}, sampling {sample_s * 1e3:g} ms")
        points.append(measure(make_point(size, n, sample_s, point_s)))
    num_cores = len(os.sched_getaffinity(0))
    loaded = {
        (size, num_runs): measure_loaded(make_point(size, 1, 0.0, point_s), num_runs)
        for size, num_runs in loads(num_cores)
    }
    model = Model(points, loaded, num_cores)
    points = [{**point, **model.predict(point)} for point in points]
    found = {
        "points": points,
        "saturation": [model.saturation(FIGURE_SIZE, t) for t in (0.0, *SAMPLE_TIMES_S)],
        "worst_prediction_error": worst_error(points),
        "idle_receiver_share": idle_share(),
    }
    return {**found, "in_words": in_words(found)}


def settings() -> list[tuple[int, int, float]]:
    """Size, actors and sample time of every point."""
    by_size = [(size, n, 0.0) for size in SIZES for n in ACTORS]
    return by_size + [(FIGURE_SIZE, n, t) for t in SAMPLE_TIMES_S for n in MANY_ACTORS]


def loads(num_cores: int) -> list[tuple[int, int]]:
    """Size and number of one-actor runs at once that the model needs for all these points; its
    saturation is that of a machine with as many actors as cores."""
    actors = {(size, n) for size, n, _ in settings() if n > 1} | {(FIGURE_SIZE, num_cores)}
    return sorted({(size, runs_at_once(n, num_cores)) for size, n in actors})


def make_point(size: int, num_actors: int, sample_s: float, point_s: float) -> Point:
    """Return a point with enough messages to fill the time, and at least 20 for every actor."""
    message_s = max(size / COPY_BYTES_PER_S, sample_s / num_actors, 1 / MESSAGES_PER_S)
    num_messages = max(20 * num_actors, int(point_s / message_s))
    return Point(size, num_actors, sample_s, num_messages)


def in_words(found: dict[str, Any]) -> list[str]:
    """Return sentences that sum up the figures."""
    points = found["points"]
    best = max(points, key=lambda point: point["mb_per_s"])
    alone = [p for p in points if p["actors"] == 1 and p["sample_time_s"] == 0.0]
    near = max(alone, key=lambda point: point["share_of_memcpy"])
    lines = [
        f"Experience moves at up to {best['mb_per_s'] / 1e3:.1f} GB/s ({best['size_bytes']} bytes, "
        f"actors: {best['actors']}). One actor reaches {to_percent(near['share_of_memcpy'])} of "
        f"the speed at which one core copies memory ({near['size_bytes']} bytes).",
    ]
    for row in found["saturation"]:
        lines.append(
            f"{row['size_bytes']} bytes, sample time {row['sample_time_s'] * 1e3:g} ms: up to "
            f"{row['actors']:.1f} actors the actors are the bottleneck, beyond that the "
            f"{row['then']}."
        )
    lines.append(
        f"The model is within {to_percent(found['worst_prediction_error'])} on every point that it "
        "was not fitted on. A receiver with nothing to do takes "
        f"{100 * found['idle_receiver_share']:.2f} % of a core."
    )
    return lines
