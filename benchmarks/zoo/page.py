"""docs/zoo.md, written from the results."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import format_table
from tianji.zoo.evidence import (
    Reached,
    Row,
    WallTime,
    Zoo,
    count_verdicts,
    estimate_text,
    return_text,
)

INTRODUCTION = Path(__file__).with_name("introduction.md")
HEADERS = (
    *("preset", "steps", "random", "doing nothing"),
    *("mean", "IQM (95 %)", "seeds", "s", "machine"),
)
PEER_HEADERS = ("SB3 mean", "SB3 IQM (95 %)", "SB3 seeds", "SB3 s", "SB3 machine", "")
MACHINES = {"AMD EPYC": "EPYC", "Intel(R) Xeon(R) Processor": "Xeon"}
"""Short names of processors."""
TITLES = {"ppo": "PPO", "dqn": "DQN", "sac": "SAC", "impala": "IMPALA"}
OWN_TASKS = "Memory and masks"


def sections(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows by algorithm; tasks of our own come last."""
    found: dict[str, list[Row]] = {title: [] for title in (*TITLES.values(), OWN_TASKS)}
    for row in rows:
        is_own = row["env"].startswith("tianji.")
        found[OWN_TASKS if is_own else TITLES[row["algorithm"]]].append(row)
    return {title: of_title for title, of_title in found.items() if of_title}


def make_page(zoo: Zoo) -> str:
    parts = [INTRODUCTION.read_text().format(episodes=zoo["episodes"]), verdict(zoo["rows"])]
    for title, rows in sections(zoo["rows"]).items():
        picture = f"![Training returns over environment steps](pictures/{picture_name(title)})"
        parts.append(f"## {title}\n\n{table(rows)}\n\n{picture}")
    parts.append(f"## Wall time\n\n{wall_time(zoo['rows'])}")
    parts.append(f"## Where the figures come from\n\n{provenance(zoo)}")
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def picture_name(title: str) -> str:
    return f"zoo-{title.lower().replace(' ', '-')}.png"


def verdict(rows: Sequence[Row]) -> str:
    failed = [f"`{row['preset']}`" for row in rows if row["verdict"] == "not passed"]
    text = f"**{count_verdicts(rows)}**"
    return f"{text} Not passed: {', '.join(failed)}." if failed else text


def table(rows: Sequence[Row]) -> str:
    has_peer = any(row["sb3"] for row in rows)
    cells = [_cells(row, has_peer) for row in rows]
    return format_table((*HEADERS, *(PEER_HEADERS if has_peer else ())), cells)


def _cells(row: Row, has_peer: bool) -> list[str]:
    idle = row["doing_nothing"]
    no_skill = [return_text(row["random"]), "" if idle is None else return_text(idle)]
    fixed = [f"`{row['preset']}`", f"{row['env_steps']:,}", *no_skill]
    ours = _reached(row["tianji"])
    if not has_peer:
        return [*fixed, *ours]
    return [*fixed, *ours, *_reached(row["sb3"]), row["verdict"] or ""]


def _reached(one: Reached | None) -> list[str]:
    if one is None:
        return [""] * 5
    machines = ", ".join(MACHINES.get(machine, machine) for machine in one["machines"])
    returns = (return_text(one["mean"]), estimate_text(one), str(one["seeds"]))
    return [*returns, f"{one['train_s']:.0f}", machines]


def wall_time(rows: Sequence[Row]) -> str:
    cells = [_time_cells(row["preset"], time) for row in rows if (time := row["wall_time"])]
    if not cells:
        return (
            "Not measured yet: `python -m benchmarks.zoo.bench --wall-time` on a quiet machine "
            "trains both for 20,000 steps in turn, on all cores."
        )
    measured = [
        (f"TianJi {what}, s", f"SB3 {what}, s", f"ratio of {what}")
        for what in ("training", "whole")
    ]
    headers = ("preset", *itertools.chain(*measured), "turns")
    about = (
        "Seconds for 20,000 steps, in turn on all cores of one machine; medians. `training` counts "
        "from the first environment step to the end of training; `whole` is the "
        "whole program, with imports, the start of processes, and files and pictures at the end. "
        "Stable-Baselines3 (SB3) ends with a whole batch; its training is counted in proportion to "
        "the steps that were asked for."
    )
    return f"{about}\n\n{format_table(headers, cells)}"


def _time_cells(preset: str, time: WallTime) -> list[str]:
    trained = _ratio_cells(time["tianji_s"], time["sb3_s"])
    whole = _ratio_cells(time["tianji_whole_s"], time["sb3_whole_s"])
    return [f"`{preset}`", *trained, *whole, str(time["turns"])]


def _ratio_cells(ours_s: float, theirs_s: float) -> list[str]:
    return [f"{ours_s:.1f}", f"{theirs_s:.1f}", f"{ours_s / theirs_s:.2f}"]


def provenance(zoo: Zoo) -> str:
    names = {"tianji": "TianJi", "sb3": "Stable-Baselines3"}
    lines = [
        f"- Machine: {'; '.join(zoo['machines'])}.",
        f"- Commits: {', '.join(zoo['commits'])}.",
    ]
    for name, packages in sorted(zoo["versions"].items(), reverse=True):
        listed = ", ".join(f"{package} {version}" for package, version in packages.items())
        lines.append(f"- {names[name]}: {listed}. Such as `{zoo['commands'][name]}`.")
    return "\n".join(lines)
