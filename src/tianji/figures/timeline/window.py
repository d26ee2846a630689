"""The part of a timeline that is shown: a few versions, from where the run is steady."""

from __future__ import annotations

import statistics
from typing import NamedTuple

from tianji.errors import UsageError
from tianji.trace.read import Span, Timeline

VERSIONS = 3
_MARGIN = 0.04
_SKIP = 0.25  # share of the versions to leave out: the beginning is not steady


class Window(NamedTuple):
    """A stretch of a timeline."""

    start_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        return self.end_s - self.start_s


def choose(timeline: Timeline, from_s: float | None, for_s: float | None) -> Window:
    """Return the requested window, or some versions of ordinary length without a checkpoint."""
    start_s, length_s = from_s, for_s
    if start_s is None or length_s is None:
        usual = _usual(timeline)
        start_s = usual.start_s if start_s is None else start_s
        length_s = usual.length_s if length_s is None else length_s
    window = Window(start_s, min(start_s + length_s, timeline.end_s))
    if length_s <= 0 or not 0 <= start_s < timeline.end_s:
        raise UsageError(
            f"--from-s {start_s:g} --for-s {length_s:g} shows nothing: the trace goes from 0 to "
            f"{timeline.end_s:.3f} s."
        )
    return window


def _usual(timeline: Timeline) -> Window:
    published_s = [span.start_s for span in timeline.of_kind("publish")]
    steady = published_s[int(len(published_s) * _SKIP) :]
    pairs = zip(steady, steady[VERSIONS:], strict=False)
    windows = [Window(start, end) for start, end in pairs]
    if not windows:
        return Window(0.0, timeline.end_s)
    saves = timeline.of_kind("save")
    calm = [w for w in windows if not any(overlaps(span, w) for span in saves)] or windows
    middle_s = statistics.median(window.length_s for window in calm)
    chosen = min(calm, key=lambda window: abs(window.length_s - middle_s))
    margin_s = _MARGIN * chosen.length_s
    return Window(max(0.0, chosen.start_s - margin_s), chosen.end_s + margin_s)


def overlaps(span: Span, window: Window) -> bool:
    return span.end_s > window.start_s and span.start_s < window.end_s
