"""The last words of a run: what was reached, where it lies, what to try next."""

from __future__ import annotations

import math
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tianji.cli.output import Outcome, people
from tianji.config.run import RunConfig
from tianji.display.numbers import counted, on_clock
from tianji.display.rounds import short_name
from tianji.run_folder.paths import RUNS

REASONS = {
    "target_reached": ("Target reached", "green", 0),
    "max_env_steps": ("Stopped at max_env_steps", "yellow", 0),
    "max_wall": ("Stopped at max_wall_s", "yellow", 0),
    "interrupted": ("Interrupted; `tianji resume` continues it", "yellow", 130),
    "failed": ("Failed", "red", 1),
}
SAMPLED = (
    "sampled in training; tianji eval takes the best ones (greedy) unless it gets --stochastic, "
    "so its mean return may differ"
)
FRAME_WIDTH = 8
"""Width of the closing block's frame, with the space between two columns."""


def show_closing(summary: Mapping[str, Any]) -> Outcome:
    """Print the closing block of a run and give its outcome."""
    words, style, exit_code = REASONS[summary["stopped_because"]]
    commands = command_list(_next_things(summary))
    block = Group(fact_list(_facts(summary)), Text("\nNext things to try", style="bold"), commands)
    people().print(Panel(block, title=words, title_align="left", border_style=style, expand=False))
    return Outcome(dict(summary), exit_code)


def fact_list(facts: Mapping[str, str]) -> Table:
    """Facts by name. Long words are folded: nobody can use a path that is cut."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, text in facts.items():
        table.add_row(name, Text(text))
    return table


def _facts(summary: Mapping[str, Any]) -> dict[str, str]:
    run_dir = Path(summary["run_dir"])
    facts = {}
    if "first_cause" in summary:
        facts["first cause"] = summary["first_cause"]
    facts["return"] = _return_text(summary)
    if summary.get("mean_return_100") is not None and summary["stopped_because"] != "failed":
        facts["actions"] = SAMPLED
    if by_env := summary.get("returns_by_env"):
        means = (f"{_mean_text(mean)} {short_name(name)}" for name, mean in by_env.items())
        facts["by environment"] = ", ".join(means)
    if summary.get("time_to_target_s") is not None:
        seconds = f"{summary['time_to_target_s']:.1f} s"
        facts["time to target"] = on_clock(seconds, summary["engine"], of="training")
    updates = counted(summary["updates"], "update")
    work = f"{summary['env_steps']:,} environment steps, {updates}"
    wall_s = f"{summary['wall_s']:.1f} s"
    facts["work"] = f"{work} in {on_clock(wall_s, summary['engine'])}"
    if summary.get("critical_path") is not None:
        facts["why"] = "\n".join(summary["explanation"])
    facts["run folder"] = f"{run_dir}/"
    traces = sorted(run_dir.glob("trace*.json.gz"), key=lambda trace: trace.stat().st_mtime)
    if traces:
        facts["trace"] = f"{traces[-1]} (open it in https://ui.perfetto.dev)"
    for picture in sorted(run_dir.glob("*.png")):
        facts["picture"] = str(picture)
    return facts


def _return_text(summary: Mapping[str, Any]) -> str:
    mean = summary.get("mean_return_100")
    if mean is None:
        by_env = (summary.get("returns_by_env") or {}).items()
        unfinished = ", ".join(env for env, of_env in by_env if of_env is None)
        return f"no episode{' of ' * bool(unfinished)}{unfinished} has finished yet"
    target = summary.get("target_return")
    aim = f" (target {target:g})" if target is not None else ""
    count, num_envs = (
        min(100, summary.get("episodes") or 100),
        len(summary.get("returns_by_env") or {}),
    )
    if num_envs:
        return f"{mean:.1f}, mean of {num_envs} environments over their last episodes{aim}"
    return f"{mean:.1f}, mean of the last {count} training episodes{aim}"


def _mean_text(mean: float | None) -> str:
    return "-" if mean is None else f"{mean:.1f}"


def _next_things(summary: Mapping[str, Any]) -> dict[str, str]:
    """Commands and what they are for."""
    name = shlex.quote(run_name(Path(summary["run_dir"])))
    resume = {f"tianji resume {name}{_raised(summary)}": "continue from the last checkpoint"}
    if summary.get("checkpoint", "unknown") is None:
        return {"tianji train": "start again: nothing was saved"}
    if summary["stopped_because"] == "failed":
        envs = list(summary.get("returns_by_env") or [summary["env"]])
        words = " ".join(f"--env {shlex.quote(env)}" for env in envs)
        return {f"tianji doctor {words}": "look for the cause"} | resume
    video = " --video" * bool(summary.get("can_be_filmed"))
    lines = {
        f"tianji eval {name}{video}": "evaluate the policy" + " and film it" * bool(video),
        f"tianji export {name}": "write the policy as ONNX",
    }
    if summary["env"] == RunConfig.model_fields["env"].default:
        lines["tianji train --env YOUR-ENV"] = "train on an environment of your own"
    return lines if summary["stopped_because"] == "target_reached" else lines | resume


def run_name(run_dir: Path) -> str:
    """What the commands find a run by: its name under runs/, else its path."""
    return str(run_dir.relative_to(RUNS) if run_dir.is_relative_to(RUNS) else run_dir)


def _raised(summary: Mapping[str, Any]) -> str:
    """The limit that the run stopped at, twice as high: with the same it would stop at once."""
    limits = {
        "max_env_steps": f" --max-env-steps {2 * summary['env_steps']}",
        "max_wall": f" --max-wall-s {2 * math.ceil(summary['wall_s'])}",
    }
    return limits.get(summary["stopped_because"], "")


def command_list(purposes: Mapping[str, str]) -> Table:
    """Commands with what they are for. Where a line has no room for both, the purpose follows in
    the next one: nobody can use a command that is cut."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="cyan", overflow="fold")
    typed = {command.replace("tianji", _typed(), 1): about for command, about in purposes.items()}
    widest = max(map(len, typed)) + max(map(len, typed.values()))
    for command, purpose in typed.items():
        if widest <= people().width - FRAME_WIDTH:
            table.add_row(Text(command), purpose)
        else:
            table.add_row(Text.assemble(command, (f"\n  {purpose}", "default")))
    return table


def _typed() -> str:
    """What the person has to type: `make train` runs us from a folder that is on no path."""
    if shutil.which("tianji") is not None or not sys.argv[0].endswith("tianji"):
        return "tianji"
    return shlex.quote(os.path.relpath(sys.argv[0]))
