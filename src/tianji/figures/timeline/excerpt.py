"""What figure 1 shows of a run: the spans of a few versions, and the idle shares of the whole run.

An excerpt is small, so that it can be kept as the data of a figure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tianji.figures.files import Data
from tianji.figures.timeline.window import Window, overlaps
from tianji.trace.read import Arrow, Span, Timeline, Touch

IDLE = ("paced", "wait")
PACED = "waits for a grant: paced"
# What only an actor, a buffer and a learner do, in the order of the data.
_STAGES = ("write", "receive", "update")
# What a role of each stage waits for; the last is for roles outside the data's way.
_WAITS_FOR = (
    "waits for a policy or an answer",
    "waits for items",
    "waits for experience",
    "waits for its time",
)
_DIGITS = 7  # of kept times in seconds: a tenth of a microsecond


@dataclass(frozen=True, slots=True)
class Row:
    """A role: its idle share of the whole run and the reason, and its spans in the window."""

    role: str
    idle_share: float
    why_idle: str
    spans: list[Span]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The visible part of a run. items_end: where the arrows of items end, in words."""

    about: str
    window: Window
    rows: list[Row]
    arrows: list[Arrow]
    items_end: str

    def to_ms(self, at_s: float) -> float:
        """Return milliseconds from the start of the window."""
        return (at_s - self.window.start_s) * 1e3

    def to_data(self) -> Data:
        return {
            "about": self.about,
            "window": [round(at_s, _DIGITS) for at_s in self.window],
            "items_end": self.items_end,
            "rows": [
                {
                    "role": row.role,
                    "idle_share": round(row.idle_share, 4),
                    "why_idle": row.why_idle,
                    "spans": {name: _kept(row.spans, name) for name in _names(row.spans)},
                }
                for row in self.rows
            ],
            "arrows": [
                {"name": name, "touches": [[t.role, round(t.at_s, _DIGITS)] for t in touches]}
                for name, touches in self.arrows
            ],
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Excerpt:
        rows = [
            Row(row["role"], row["idle_share"], row["why_idle"], _spans(row["spans"]))
            for row in data["rows"]
        ]
        arrows = [
            Arrow(arrow["name"], tuple(Touch(*touch) for touch in arrow["touches"]))
            for arrow in data["arrows"]
        ]
        return cls(data["about"], Window(*data["window"]), rows, arrows, data["items_end"])


def _names(spans: list[Span]) -> list[str]:
    return list(dict.fromkeys(span.name for span in spans))


def _kept(spans: list[Span], name: str) -> str:
    """Return start and length in microseconds of all spans of a name, in one line."""
    found = [span for span in spans if span.name == name]
    return " ".join(f"{s.start_s * 1e6:.0f}+{(s.end_s - s.start_s) * 1e6:.1f}" for s in found)


def _spans(kept: Mapping[str, str]) -> list[Span]:
    found = []
    for name, line in kept.items():
        for word in line.split():
            start_us, _, length_us = word.partition("+")
            start_s = float(start_us) / 1e6
            found.append(Span(name, start_s, start_s + float(length_us) / 1e6, {}))
    return sorted(found, key=lambda span: span.start_s)


def make_excerpt(
    timeline: Timeline, window: Window, about: str, without_grant: str = PACED
) -> Excerpt:
    """Return the spans that reach into the window, and the arrows that lie in it. without_grant:
    what an actor without a grant does, in words."""
    roles = sorted(timeline.spans, key=lambda role: _place(timeline, role))
    rows = [
        Row(
            role,
            timeline.shares[role].idle_share,
            why_idle(timeline, role, without_grant),
            [span for span in timeline.spans[role] if overlaps(span, window)],
        )
        for role in roles
    ]
    arrows = [
        arrow
        for arrow in timeline.arrows
        if all(window.start_s <= touch.at_s <= window.end_s for touch in arrow.touches)
    ]
    # With replay an item may be sampled at any time: its arrow ends in the store.
    ends = {_stage(timeline, a.touches[-1].role) for a in arrows if a.name == "item"}
    versions = len(timeline.of_kind("publish"))
    length = f"{window.length_s * 1e3:.0f} ms of {timeline.end_s:.1f} s, {versions} versions"
    items_end = "store" if _STAGES.index("receive") in ends else "update"
    return Excerpt(f"{about}; {length}", window, rows, arrows, items_end)


def _place(timeline: Timeline, role: str) -> tuple[int, list[int], str]:
    """Sort roles by their stage, those of one stage by the numbers in their names."""
    return _stage(timeline, role), [int(digits) for digits in re.findall(r"\d+", role)], role


def _stage(timeline: Timeline, role: str) -> int:
    done = {span.name for span in timeline.spans[role]}
    return next((i for i, name in enumerate(_STAGES) if name in done), len(_STAGES))


def _waits_for(timeline: Timeline, role: str) -> str:
    done = {span.name for span in timeline.spans[role]}
    if "infer" in done and "step" not in done:
        return "waits for questions"
    return _WAITS_FOR[_stage(timeline, role)]


def why_idle(timeline: Timeline, role: str, without_grant: str) -> str:
    """Say what a role mostly waits for."""
    times_s = dict.fromkeys(IDLE, 0.0)
    for span in timeline.spans[role]:
        if span.name in times_s:
            times_s[span.name] += span.end_s - span.start_s
    times_s["turn"] = timeline.shares[role].idle_s - sum(times_s.values())
    if timeline.shares[role].idle_share < 0.005:
        return "hardly ever waits"
    return {
        "paced": without_grant,
        "wait": _waits_for(timeline, role),
        "turn": "while others have their turn",
    }[max(times_s, key=lambda reason: times_s[reason])]
