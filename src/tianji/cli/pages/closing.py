"""The last words of a run: what was reached, where it lies, what to try next."""

from __future__ import annotations

import math
import shlex
from pathlib import Path

from tianji.cli.output import Outcome
from tianji.cli.pages.tables import fact_list, run_name, show_block
from tianji.config.run import RunConfig
from tianji.display.phrases import ENDINGS, NO_EPISODE, short_env_name
from tianji.records import Summary
from tianji.wording import counted, on_clock, to_seconds

EXIT_CODES = {"interrupted": 130, "failed": 1}
"""Exit codes of runs that neither reached their target nor a limit."""
SAMPLED = (
    "sampled in training; tianji eval takes the best ones (greedy) unless it gets --stochastic, "
    "so its mean return may differ"
)


def show_closing(summary: Summary) -> Outcome:
    """Print the closing block of a run and return its outcome."""
    because = summary["stopped_because"]
    words, style = ENDINGS[because]
    show_block(words.capitalize(), style, [fact_list(_facts(summary))], _next_things(summary))
    return Outcome({**summary}, EXIT_CODES.get(because, 0))


def _facts(summary: Summary) -> dict[str, str]:
    run_dir, engine = Path(summary["run_dir"]), summary["engine"]
    facts = {}
    if "first_cause" in summary:
        facts["first cause"] = summary["first_cause"]
    facts["return"] = _return_text(summary)
    if summary["mean_return_100"] is not None and summary["stopped_because"] != "failed":
        facts["actions"] = SAMPLED
    if by_env := summary["returns_by_env"]:
        means = (f"{_mean_text(mean)} {short_env_name(name)}" for name, mean in by_env.items())
        facts["by environment"] = ", ".join(means)
    if summary["time_to_target_s"] is not None:
        seconds = to_seconds(summary["time_to_target_s"])
        facts["time to target"] = on_clock(seconds, engine, of="training")
    work = f"{summary['env_steps']:,} environment steps, {counted(summary['updates'], 'update')}"
    facts["work"] = f"{work} in {on_clock(to_seconds(summary['wall_s']), engine)}"
    if summary["critical_path"] is not None:
        facts["why"] = "\n".join(summary["explanation"])
    facts["run folder"] = f"{run_dir}/"
    traces = sorted(run_dir.glob("trace*.json.gz"), key=lambda trace: trace.stat().st_mtime)
    if traces:
        facts["trace"] = f"{traces[-1]} (open it in https://ui.perfetto.dev)"
    for picture in sorted(run_dir.glob("*.png")):
        facts["picture"] = str(picture)
    return facts


def _return_text(summary: Summary) -> str:
    mean, by_env = summary["mean_return_100"], summary["returns_by_env"]
    if mean is None:
        unfinished = ", ".join(env for env, of_env in by_env.items() if of_env is None)
        return f"no episode of {unfinished} has finished yet" if unfinished else NO_EPISODE
    target = summary["target_return"]
    aim = f" (target {target:g})" if target is not None else ""
    if by_env:
        return f"{mean:.1f}, mean of {len(by_env)} environments over their last episodes{aim}"
    count = min(100, summary["episodes"] or 100)
    return f"{mean:.1f}, mean of the last {count} training episodes{aim}"


def _mean_text(mean: float | None) -> str:
    return "-" if mean is None else f"{mean:.1f}"


def _next_things(summary: Summary) -> dict[str, str]:
    """Return commands and what they are for."""
    name = run_name(summary["run_dir"])
    resume = {f"tianji resume {name}{_raised(summary)}": "continue from the last checkpoint"}
    if summary["checkpoint"] is None:
        return {"tianji train": "start again: nothing was saved"}
    if summary["stopped_because"] == "failed":
        envs = list(summary["returns_by_env"] or [summary["env"]])
        words = " ".join(f"--env {shlex.quote(env)}" for env in envs)
        return {f"tianji doctor {words}": "look for the cause"} | resume
    video = " --video" * bool(summary["can_be_filmed"])
    lines = {
        f"tianji eval {name}{video}": "evaluate the policy" + " and film it" * bool(video),
        f"tianji export {name}": "write the policy as ONNX",
    }
    if summary["env"] == RunConfig.model_fields["env"].default:
        lines["tianji train --env YOUR-ENV"] = "train on an environment of your own"
    return lines if summary["stopped_because"] == "target_reached" else lines | resume


def _raised(summary: Summary) -> str:
    """Double the limit that the run stopped at: with the same one it would stop at once."""
    limits = {
        "max_env_steps": f" --max-env-steps {2 * summary['env_steps']}",
        "max_wall": f" --max-wall-s {2 * math.ceil(summary['wall_s'])}",
    }
    return limits.get(summary["stopped_because"], "")
