"""What the live display shows: a record of metrics as a dozen lines of text.

CartPole-v1 · ppo · local · seed 1                     cartpole-v1-ppo-s1 · 0:12
return    312.4 of 475    ━━━━━━━━━━━━━━━━━──────────  63 %  best 320.1
steps     410k of 1.00M   ━━━━━━━━━━━────────────────  41 %  0:18 left
steps/s   produced 33.1k  received 33.1k  trained 662k  unique 33.1k
lag       mean 1.1  p95 2  max 3 of 4  ▁█▃▁ 0-3 versions
ratio     1 of 1  version 160  updates 3,200  discarded 0  restarts 0
actor-0   ━━━━━━━─────  57 % busy  43 % waiting    212 MB  acting
learner   ━━━━━━━━━━━━  99 % busy                  310 MB  updating
metrics   approx_kl 0.0123  clip_fraction 0.11  entropy 0.54
why       The learner is the bottleneck: it is busy 99 % of the time, the actor 57 %. ...
event     12:01:33 Checkpoint v00000160: 0.2 MB in 0.01 s.

A run of several groups has one more, with the steps that each group receives:

groups    0 16.9k/s  1 16.2k/s

A run that gathers gradients has two other lines in place of `lag` and `ratio`:

rounds    12.3/s  first 20 gradients  version 160  waiting for actor-3
gradients 246/s  █▆▃▁ 12 % to 41 % by actor  4 % of steps discarded
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from rich.text import Text

from tianji.checkpoint.writer import to_size
from tianji.display.live import Marks, to_columns
from tianji.display.phrases import NO_EPISODE, Outlook, short_env_name, silent_roles
from tianji.explain.rounds import MUCH_DROPPED, cost_in_words, late_actors, named, rule_in_short
from tianji.records import Gathering, GroupFigures, Metrics, Ratio, roles_of
from tianji.wording import on_clock, to_count, to_duration, to_percent, to_return, to_value

if TYPE_CHECKING:
    from tianji.config.run import RunConfig

Parts = Sequence[tuple[str, str]]
"""Text with its style."""

NAME_WIDTH = 10
MAX_ROLE_LINES = 8
MAX_METRIC_LINES = 2
MAX_WHY_LINES = 4
MAX_COLUMNS = 24
SLOW_GROUP = 0.7
"""A group that receives less than this share of the steps of the fastest one is slow."""


class Panel:
    """Draws the newest record."""

    def __init__(self, config: RunConfig, marks: Marks, first_return: float | None = None) -> None:
        """first_return: of a run whose earlier records are not shown here."""
        self._config = config
        self._marks = marks
        self._outlook = Outlook(config, first_return)
        self._record: Metrics | None = None
        self._why: Sequence[str] = ()

    def update(self, record: Metrics, why: Sequence[str] = ()) -> None:
        """why: sentences that explain the speed of the run."""
        self._record, self._why = record, why
        self._outlook.update(record)

    def lines(self, width: int, event: Parts) -> Iterator[Text]:
        """Yield all lines of the display; those wider than `width` are cut when drawn."""
        record = self._record
        yield self._title(width, record["wall_s"] if record is not None else 0.0)
        if record is None:
            yield _line("", [("starting ...", "dim")])
        else:
            bar_width = max(10, min(60, width - 53))
            yield self._return_line(record, bar_width, width)
            yield self._steps_line(record, bar_width)
            yield self._rates_line(record)
            yield from self._lane_lines(record)
            if figures := record.get("groups"):
                yield _groups_line(figures)
            yield from self._role_lines(record, width)
            if words := silent_roles(record, self._config.supervise.heartbeat_timeout_s):
                yield _line("waiting", [(f"for {words}", "yellow")])
            yield from _metric_lines(record["learner"], width)
            yield from self._why_lines(width)
        if event:
            yield _line("event", event)

    def _title(self, width: int, wall_s: float) -> Text:
        config, dot = self._config, f" {self._marks.dot} "
        facts = (config.env_name, config.algorithm.name, config.engine, f"seed {config.seed}")
        left = dot.join(facts)
        right = on_clock(to_duration(wall_s), config.engine)
        return title_line(left, f"{config.run}{dot}{right}" if config.run else right, width)

    def _bar(self, share: float | None, width: int, style: str) -> Parts:
        filled = round(width * min(1.0, max(0.0, share or 0.0)))
        return [
            (self._marks.done * filled, style),
            (self._marks.rest * (width - filled), "bright_black"),
        ]

    def _return_line(self, record: Metrics, bar_width: int, width: int) -> Text:
        now, target = record["mean_return_100"], self._config.target_return
        if now is None:
            return _line("return", [(NO_EPISODE, "dim")])
        best = ("  best ", "dim"), (to_return(self._outlook.best_return), "")
        episodes = ("  episodes ", "dim"), (to_count(record["episodes"]), "")
        if target is None:
            return _line("return", [(f"{to_return(now)}", "bold"), *best, *episodes])
        share = self._outlook.return_share()
        text = f"{to_return(now)} of {target:g}"
        bar = self._bar(share, bar_width, "green")
        parts = [(f"{text:<16}", "bold"), *bar, (f"{to_percent(share):>6}", ""), *best]
        used = NAME_WIDTH + sum(len(part) for part, _ in (*parts, *episodes))
        return _line("return", [*parts, *episodes] if used <= width else parts)

    def _steps_line(self, record: Metrics, bar_width: int) -> Text:
        steps, limit = record["env_steps"], self._config.max_env_steps
        share = min(1.0, steps / limit)
        text = f"{to_count(steps)} of {to_count(limit)}"
        bar = self._bar(share, bar_width, "cyan")
        parts = [(f"{text:<16}", "bold"), *bar, (f"{to_percent(share):>6}", "")]
        if (left_s := self._outlook.left_s()) is not None:
            parts += [(f"  {to_duration(left_s)} left", "dim")]
        return _line("steps", parts)

    def _rates_line(self, record: Metrics) -> Text:
        rates = cast("Mapping[str, float]", record["rates_per_s"])
        shown = {name.removesuffix("_trained"): to_count(rate) for name, rate in rates.items()}
        return _line("steps/s", _pairs(shown))

    def _lane_lines(self, record: Metrics) -> Iterator[Text]:
        """Yield what is between actors and learner: lag and ratio, or rounds of gradients."""
        if "gather" not in record:
            yield self._lag_line(record)
            yield _counts_line(record)
            return
        yield _rounds_line(record, record["gather"])
        yield self._gradients_line(record, record["gather"])
        if by_env := record["returns_by_env"]:
            names = {short_env_name(name): to_return(mean) for name, mean in by_env.items()}
            yield _line("by env", _pairs(names))

    def _lag_line(self, record: Metrics) -> Text:
        lag, bound = record["lag_versions"], self._config.max_lag
        highest = lag["max"]
        is_bound = self._config.balance == "paced"
        over = is_bound and highest is not None and highest > bound
        parts = _pairs({"mean": to_value(lag["mean"]), "p95": to_value(lag["p95"])})
        most = f"{to_value(highest)} of {bound}" if is_bound else to_value(highest)
        parts += [("  max ", "dim"), (most, "red" if over else "")]
        counts = record["lag_histogram"]
        if any(counts):
            counts = counts[: 1 + max(i for i, count in enumerate(counts) if count)]
            parts += [("  ", ""), (to_columns(counts, self._marks), "cyan")]
            parts += [(f" 0-{len(counts) - 1} versions", "dim")]
        return _line("lag", parts)

    def _gradients_line(self, record: Metrics, gather: Gathering) -> Text:
        """Show which actors make the gradients, and how many are dropped."""
        parts = [(f"{to_value(gather['gradients_per_s'])}/s", "")]
        counts, total = gather["counts"], sum(gather["counts"])
        if len(counts) > 1 and total:
            columns = to_columns(counts[:MAX_COLUMNS], self._marks)
            low, high = to_percent(min(counts) / total), to_percent(max(counts) / total)
            parts += [("  ", ""), (columns, "magenta"), (f" {low} to {high} by actor", "dim")]
        is_much = (gather["discarded_step_share"] or 0.0) > MUCH_DROPPED
        cost = cost_in_words(gather, record["lag_versions"])
        return _line("gradients", [*parts, (f"  {cost}", "yellow" if is_much else "")])

    def _role_lines(self, record: Metrics, width: int) -> Iterator[Text]:
        roles = list(record["busy_share"])
        if len(roles) > MAX_ROLE_LINES:
            actors = roles_of(record, "actor")
            yield self._actors_line(record, actors, width)
            roles = [role for role in roles if role not in actors]
        for role in roles:
            yield self._role_line(record, role)

    def _role_line(self, record: Metrics, role: str) -> Text:
        busy, waiting = record["busy_share"][role], record["paced_share"].get(role)
        memory = record["rss_bytes"].get(role)
        parts = [*self._bar(busy, 12, "magenta"), (f"{to_percent(busy):>6}", ""), (" busy", "dim")]
        waits = f"{to_percent(waiting):>6} waiting" if waiting else " " * 14
        size = f"{to_size(memory) if memory else '':>10}"
        activity = f"  {record['activity'].get(role, '')}"
        return _line(role, [*parts, (waits + size, "dim"), (activity, "")])

    def _actors_line(self, record: Metrics, actors: list[str], width: int) -> Text:
        """Show many actors in one line: a column for each, their mean, and what they do."""
        shares = [record["busy_share"][role] for role in actors]
        activities = [record["activity"].get(role, "") for role in actors]
        names = sorted(set(activities), key=lambda name: -activities.count(name))
        doing = ", ".join(f"{activities.count(name)} {name}" for name in names if name)
        columns = to_columns(shares[: max(8, width - 60)], self._marks, highest=1.0)
        mean = sum(shares) / len(shares)
        spread = f"({to_percent(min(shares))} to {to_percent(max(shares))})"
        parts = [(columns, "magenta"), (f"{to_percent(mean):>6}", ""), (f" busy {spread}", "dim")]
        return _line(f"{len(actors)} actors", [*parts, (f"  {doing}", "")])

    def _why_lines(self, width: int) -> Iterator[Text]:
        room = max(20, width - NAME_WIDTH)
        lines = textwrap.wrap(
            " ".join(self._why), room, max_lines=MAX_WHY_LINES, placeholder=self._marks.more
        )
        for number, line in enumerate(lines):
            yield _line("" if number else "why", [(line, "")])


def title_line(left: str, right: str, width: int) -> Text:
    """Lay out the first line of a screen: what is trained, and where and for how long."""
    gap = " " * max(1, width - len(left) - len(right) - 1)
    return Text.assemble((left, "bold"), gap, (right, "dim"))


def _counts_line(record: Metrics) -> Text:
    parts = [
        (_ratio_of_target(record["ratio"]), ""),
        *_pairs({"  version": f"{record['version']:,}", "updates": f"{record['updates']:,}"}),
        *_warned("discarded", record["discarded_items"]),
        *_warned("restarts", record["restarts"]),
    ]
    if record["blocked_inserts"]:
        parts += _warned("blocked inserts", record["blocked_inserts"])
    if record["env_failures"]:
        parts += _warned("environment failures", record["env_failures"])
    return _line("ratio", parts)


def _groups_line(groups: Sequence[GroupFigures]) -> Text:
    """Show how fast each group receives steps; slow ones in yellow."""
    rates = [figures["rates_per_s"]["received"] for figures in groups]
    parts: list[tuple[str, str]] = []
    for figures, rate in zip(groups, rates, strict=True):
        is_slow = rate < SLOW_GROUP * max(rates)
        space = "  " if parts else ""
        parts += [(f"{space}{figures['group']} ", "dim")]
        parts += [(f"{to_count(rate)}/s", "yellow" if is_slow else "")]
    return _line("groups", parts)


def _ratio_of_target(ratio: Ratio) -> str:
    """Show the ratio, and the one that it is kept at if there is one."""
    actual = to_value(ratio["actual"])
    return actual if ratio["target"] is None else f"{actual} of {to_value(ratio['target'])}"


def _rounds_line(record: Metrics, gather: Gathering) -> Text:
    """Show how fast rounds are made, and which actors they wait for."""
    parts = [
        (f"{to_value(gather['rounds_per_s'])}/s", ""),
        (f"  {rule_in_short(gather)}", "dim"),
        ("  version ", "dim"),
        (f"{record['version']:,}", ""),
    ]
    if names := late_actors(gather):
        parts += [(f"  waiting for {names}", "yellow")]
    if gather["absent"]:
        parts += [(f"  without {named(gather['absent'])}", "yellow")]
    if record["restarts"]:
        parts += _warned("restarts", record["restarts"])
    return _line("rounds", parts)


def _metric_lines(found: Mapping[str, float], width: int) -> Iterator[Text]:
    lines: list[list[tuple[str, str]]] = []
    used = width
    for key, value in found.items():
        text = to_value(value)
        room = len(key) + len(text) + 3
        if not lines or used + room > width:
            lines.append([])
            used = NAME_WIDTH
        lines[-1] += [(f"{key} ", "dim"), (f"{text}  ", "")]
        used += room
    for number, line in enumerate(lines[:MAX_METRIC_LINES]):
        yield _line("" if number else "metrics", line)


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


def _warned(name: str, count: int) -> list[tuple[str, str]]:
    """Return a count that should be 0, in yellow where it is not."""
    return [(f"  {name} ", "dim"), (to_count(count), "yellow" if count else "")]
