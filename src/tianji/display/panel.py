"""What the live display shows: a record of metrics as a dozen lines of text.

CartPole-v1 · ppo · local · seed 1                     cartpole-v1-ppo-s1 · 0:12
return    312.4 of 475    ━━━━━━━━━━━━━━━━━──────────  63 %  best 320.1
steps     410k of 1.00M   ━━━━━━━━━━━────────────────  41 %  0:18 left
steps/s   produced 33.1k  received 33.1k  trained 662k  unique 33.1k
lag       mean 1.1  p95 2  max 3 of 4  ▁█▃▁ 0-3 versions
ratio     1 of 1  version 160  updates 3,200  discarded 0  restarts 0
actor-0   ━━━━━━━─────  57 % busy  43 % paced    212 MB  stepping
learner   ━━━━━━━━━━━━  99 % busy                310 MB  updating
metrics   approx_kl 0.0123  clip_fraction 0.11  entropy 0.54
why       The learner is the bottleneck: it is busy 99 % of the time, the actor 57 %. ...
event     12:01:33 Checkpoint v00000160: 0.2 MB in 0.01 s.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from tianji.checkpoint.writer import to_size
from tianji.display.marks import Marks, to_columns
from tianji.display.outlook import Outlook
from tianji.display.rounds import gradients_parts, rounds_parts, short_name
from tianji.display.stalled import waits_for
from tianji.wording import on_clock, to_count, to_duration, to_percent, to_value

if TYPE_CHECKING:
    from tianji.config.run import RunConfig

Parts = Sequence[tuple[str, str]]
"""Text with its style."""

NAME_WIDTH = 10
MAX_ROLE_LINES = 8
MAX_METRIC_LINES = 2
MAX_WHY_LINES = 4


class Panel:
    """Draws the newest record."""

    def __init__(self, config: RunConfig, marks: Marks, first_return: float | None = None) -> None:
        """first_return: of a run whose earlier records are not shown here."""
        self._config = config
        self._marks = marks
        self._outlook = Outlook(config, first_return)
        self._record: Mapping[str, Any] = {}

    def update(self, record: Mapping[str, Any]) -> None:
        self._record = record
        self._outlook.update(record)

    def lines(self, width: int, event: Parts) -> Iterator[Text]:
        """All lines of the display, none wider than `width` (wider ones are cut when drawn)."""
        yield self._title(width)
        if not self._record:
            yield _line("", [("starting ...", "dim")])
        else:
            bar_width = max(10, min(60, width - 53))
            yield self._return_line(bar_width, width)
            yield self._steps_line(bar_width)
            yield self._rates_line()
            yield from self._lane_lines()
            yield from self._role_lines(width)
            yield from self._waiting_lines()
            yield from self._metric_lines(width)
            yield from self._why_lines(width)
        if event:
            yield _line("event", event)

    def _title(self, width: int) -> Text:
        config, dot = self._config, f" {self._marks.dot} "
        facts = (config.env_name, config.algorithm.name, config.engine, f"seed {config.seed}")
        left = dot.join(facts)
        right = on_clock(to_duration(self._record.get("wall_s") or 0.0), config.engine)
        right = f"{config.run}{dot}{right}" if config.run else right
        gap = " " * max(1, width - len(left) - len(right) - 1)
        return Text.assemble((left, "bold"), gap, (right, "dim"))

    def _bar(self, share: float | None, width: int, style: str) -> Parts:
        filled = round(width * min(1.0, max(0.0, share or 0.0)))
        return [
            (self._marks.done * filled, style),
            (self._marks.rest * (width - filled), "bright_black"),
        ]

    def _return_line(self, bar_width: int, width: int) -> Text:
        record, target = self._record, self._config.target_return
        now = record.get("mean_return_100")
        if now is None:
            return _line("return", [("no episode has finished yet", "dim")])
        best = ("  best ", "dim"), (to_value(self._outlook.best_return, 4), "")
        episodes = ("  episodes ", "dim"), (to_count(record.get("episodes")), "")
        if target is None:
            return _line("return", [(f"{to_value(now, 4)}", "bold"), *best, *episodes])
        share = self._outlook.return_share()
        text = f"{to_value(now, 4)} of {target:g}"
        bar = self._bar(share, bar_width, "green")
        parts = [(f"{text:<16}", "bold"), *bar, (f"{to_percent(share):>6}", ""), *best]
        used = NAME_WIDTH + sum(len(words) for words, _ in [*parts, *episodes])
        return _line("return", [*parts, *episodes] if used <= width else parts)

    def _steps_line(self, bar_width: int) -> Text:
        steps, limit = self._record.get("env_steps") or 0, self._config.max_env_steps
        share = min(1.0, steps / limit)
        text = f"{to_count(steps)} of {to_count(limit)}"
        left = self._outlook.left_s()
        ending = [(f"  {to_duration(left)}", ""), (" left", "dim")] if left is not None else []
        bar = self._bar(share, bar_width, "cyan")
        return _line("steps", [(f"{text:<16}", ""), *bar, (f"{to_percent(share):>6}", ""), *ending])

    def _rates_line(self) -> Text:
        rates = self._record.get("rates_per_s", {})
        names = {"produced": "produced", "received": "received", "trained": "trained"}
        names["unique_trained"] = "unique"
        pairs = {name: to_count(rates.get(key)) for key, name in names.items()}
        return _line("steps/s", _pairs(pairs))

    def _lane_lines(self) -> Iterator[Text]:
        """What is between actors and learner: lag and ratio, or rounds of gradients."""
        if not self._record.get("gather"):
            yield self._lag_line()
            yield self._counts_line()
            return
        yield _line("rounds", rounds_parts(self._record))
        yield _line("gradients", gradients_parts(self._record, self._marks))
        by_env = self._record.get("returns_by_env") or {}
        if by_env:
            names = {short_name(name): to_value(mean, 4) for name, mean in by_env.items()}
            yield _line("by env", _pairs(names))

    def _lag_line(self) -> Text:
        record, bound = self._record, self._config.max_lag
        lag = record.get("lag_versions", {})
        highest = lag.get("max")
        over = highest is not None and highest > bound
        parts = _pairs({"mean": to_value(lag.get("mean")), "p95": to_value(lag.get("p95"))})
        parts += [("  max ", "dim"), (f"{to_value(highest)} of {bound}", "red" if over else "")]
        counts = record.get("lag_histogram") or []
        if any(counts):
            counts = counts[: 1 + max(i for i, count in enumerate(counts) if count)]
            parts += [("  ", ""), (to_columns(counts, self._marks), "cyan")]
            parts += [(f" 0-{len(counts) - 1} versions", "dim")]
        return _line("lag", parts)

    def _counts_line(self) -> Text:
        record = self._record
        ratio = record.get("ratio", {})
        actual, target = ratio.get("actual"), ratio.get("target")
        restarts, discarded = record.get("restarts") or 0, record.get("discarded_items") or 0
        return _line(
            "ratio",
            [
                (f"{to_value(actual)} of {to_value(target)}", ""),
                *_pairs({"  version": f"{record.get('version') or 0:,}"}),
                *_pairs({"  updates": f"{record.get('updates') or 0:,}"}),
                ("  discarded ", "dim"),
                (to_count(discarded), "yellow" if discarded else ""),
                ("  restarts ", "dim"),
                (str(restarts), "yellow" if restarts else ""),
                *_failures(record.get("env_failures") or 0),
            ],
        )

    def _role_lines(self, width: int) -> Iterator[Text]:
        roles = list(self._record.get("busy_share", {}))
        actors = [role for role in roles if role.startswith("actor")]
        if len(roles) > MAX_ROLE_LINES:
            yield self._actors_line(actors, width)
            roles = [role for role in roles if role not in actors]
        for role in roles:
            yield self._role_line(role)

    def _role_line(self, role: str) -> Text:
        record = self._record
        busy, paced = record["busy_share"][role], record.get("paced_share", {}).get(role)
        memory = record.get("rss_bytes", {}).get(role)
        return _line(
            role,
            [
                *self._bar(busy, 12, "magenta"),
                (f"{to_percent(busy):>6}", ""),
                (" busy", "dim"),
                (f"{to_percent(paced):>6} paced" if paced else " " * 12, "dim"),
                (f"{to_size(memory) if memory else '':>10}", "dim"),
                (f"  {record.get('activity', {}).get(role, '')}", ""),
            ],
        )

    def _actors_line(self, actors: list[str], width: int) -> Text:
        """Many actors in one line: a column for each, their mean, and what they are at."""
        shares = [self._record["busy_share"][role] or 0.0 for role in actors]
        activities = [self._record.get("activity", {}).get(role, "") for role in actors]
        names = sorted(set(activities), key=lambda name: -activities.count(name))
        at = ", ".join(f"{activities.count(name)} {name}" for name in names if name)
        columns = to_columns(shares[: max(8, width - 60)], self._marks, highest=1.0)
        mean = sum(shares) / len(shares)
        spread = f"({to_percent(min(shares))} to {to_percent(max(shares))})"
        parts = [(columns, "magenta"), (f"{to_percent(mean):>6}", ""), (f" busy {spread}", "dim")]
        return _line(f"{len(actors)} actors", [*parts, (f"  {at}", "")])

    def _waiting_lines(self) -> Iterator[Text]:
        if words := waits_for(self._record, self._config.supervise.heartbeat_timeout_s):
            yield _line("waiting", [(words.removeprefix("waiting "), "yellow")])

    def _metric_lines(self, width: int) -> Iterator[Text]:
        found = self._record.get("learner", {})
        line: list[tuple[str, str]] = []
        used, name, num_lines = NAME_WIDTH, "metrics", 0
        for key, value in found.items():
            text = to_value(value)
            if line and used + len(key) + len(text) + 3 > width:
                num_lines += 1
                yield _line(name, line)
                if num_lines == MAX_METRIC_LINES:
                    return
                line, used, name = [], NAME_WIDTH, ""
            line += [(f"{key} ", "dim"), (f"{text}  ", "")]
            used += len(key) + len(text) + 3
        if line:
            yield _line(name, line)

    def _why_lines(self, width: int) -> Iterator[Text]:
        text = " ".join(self._record.get("why", ()))
        room = max(20, width - NAME_WIDTH)
        lines = textwrap.wrap(text, room, max_lines=MAX_WHY_LINES, placeholder=self._marks.more)
        for number, line in enumerate(lines):
            yield _line("" if number else "why", [(line, "")])


def _line(name: str, parts: Parts) -> Text:
    return Text.assemble(
        (f"{name:<{NAME_WIDTH}}", "dim"), *parts, no_wrap=True, overflow="ellipsis"
    )


def _pairs(pairs: Mapping[str, str]) -> list[tuple[str, str]]:
    parts: list[tuple[str, str]] = []
    for name, value in pairs.items():
        space = "  " if parts else ""
        parts += [(f"{space}{name} ", "dim"), (value, "")]
    return parts


def _failures(count: int) -> list[tuple[str, str]]:
    """Environments that failed and were replaced; nothing where there were none."""
    return [("  environment failures ", "dim"), (f"{count:,}", "yellow")] if count else []
