"""The last words of a run, or of several seeds: what was reached, where it lies, what to try next.

`tianji train ... --seeds N` trains several seeds.
"""

from __future__ import annotations

import importlib.util
import math
import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table

from tianji.cli.output import Outcome, people
from tianji.cli.pages.tables import fact_list, figures_table, run_name, show_block
from tianji.config.run import RunConfig
from tianji.config.settings import canonical
from tianji.config.values import Assignment
from tianji.display.phrases import ENDINGS, NO_EPISODE, short_env_name
from tianji.errors import UsageError
from tianji.records import Summary
from tianji.seeds.summary import SeedsSummary, Spread
from tianji.wording import RETURN_DIGITS, counted, on_clock, to_return, to_seconds, to_value

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
    is_intended = "stop_reason" in summary  # by a callback, which acts for the person
    return Outcome({**summary}, 0 if is_intended else EXIT_CODES.get(because, 0))


def _facts(summary: Summary) -> dict[str, str]:
    run_dir, engine = Path(summary["run_dir"]), summary["engine"]
    facts = {}
    if "first_cause" in summary:
        facts["first cause"] = summary["first_cause"]
    if "stop_reason" in summary:
        facts["stopped by"] = f"a callback: {summary['stop_reason']}"
    facts["return"] = _return_text(summary)
    if summary["mean_return_100"] is not None and summary["stopped_because"] != "failed":
        facts["actions"] = SAMPLED
    if by_env := summary["returns_by_env"]:
        means = {name: to_return(mean) for name, mean in by_env.items()}
        facts["by environment"] = ", ".join(f"{means[n]} {short_env_name(n)}" for n in means)
    if summary["time_to_target_s"] is not None:
        seconds = to_seconds(summary["time_to_target_s"])
        facts["time to target"] = on_clock(seconds, engine, of="training")
    work = f"{summary['env_steps']:,} environment steps, {counted(summary['updates'], 'update')}"
    facts["work"] = f"{work} in {on_clock(to_seconds(summary['wall_s']), engine)}"
    if incidents := _incidents(summary):
        facts["incidents"] = incidents
    if summary["critical_path"] is not None and summary["stopped_because"] != "failed":
        facts["why"] = "\n".join(summary["explanation"])
    facts["run folder"] = f"{run_dir}/"
    traces = sorted(run_dir.glob("trace*.json.gz"), key=lambda trace: trace.stat().st_mtime)
    if traces:
        facts["trace"] = f"{traces[-1]} (open it in https://ui.perfetto.dev)"
    for picture in sorted(run_dir.glob("*.png")):
        facts["picture"] = str(picture)
    return facts


def _incidents(summary: Summary) -> str:
    """Return what went wrong on the way and was made up for; nothing if all went well."""
    counts = {"environment failure": summary["env_failures"], "restart": summary["restarts"]}
    return ", ".join(counted(count, what) for what, count in counts.items() if count)


def _return_text(summary: Summary) -> str:
    mean, by_env = summary["mean_return_100"], summary["returns_by_env"]
    if mean is None:
        unfinished = ", ".join(env for env, of_env in by_env.items() if of_env is None)
        return f"no episode of {unfinished} has finished yet" if unfinished else NO_EPISODE
    target = summary["target_return"]
    aim = f" (target {target:g})" if target is not None else ""
    if by_env:
        of = f"{len(by_env)} environments over their last episodes"
        return f"{to_return(mean)}, mean of {of}{aim}"
    count = min(100, summary["episodes"] or 100)
    return f"{to_return(mean)}, mean of the last {count} training episodes{aim}"


def _next_things(summary: Summary) -> dict[str, str]:
    """Return commands and what they are for."""
    name = run_name(summary["run_dir"])
    # The other ranks must be there again; how they are started is known to the person alone.
    start = "mpirun ... " if summary["engine"] == "mpi" and len(summary["hosts"]) > 1 else ""
    command = f"{start}tianji resume {name}{_raised(summary)}"
    resume = {command: "continue from the last checkpoint"}
    again = f"{start}tianji train ..."
    if summary["checkpoint"] is None:
        resume = {again: "start again, as before: nothing was saved"}
    if summary["stopped_because"] == "failed":
        if not summary["env_steps"]:
            resume = {again: "start again: no step was made that could be continued from"}
        envs = list(summary["returns_by_env"] or [summary["env"]])
        words = " ".join(f"--env {shlex.quote(env)}" for env in envs)
        return {f"tianji doctor {words}": "look for the cause"} | resume
    if summary["checkpoint"] is None:
        return resume
    video = " --video" * bool(summary["can_be_filmed"] and _has_video())
    lines = {
        f"tianji eval {name}{video}": "evaluate the policy" + " and film it" * bool(video),
        f"tianji export {name}": "write the policy as ONNX",
    }
    if summary["env"] == RunConfig.model_fields["env"].default:
        lines["tianji train --env YOUR-ENV"] = "train on an environment of your own"
    return lines if summary["stopped_because"] == "target_reached" else lines | resume


def _has_video() -> bool:
    """Return whether the extra `video` is installed: what is suggested must work."""
    return importlib.util.find_spec("imageio_ffmpeg") is not None


def _raised(summary: Summary) -> str:
    """Double the limit that the run stopped at: with the same one it would stop at once."""
    limits = {
        "max_env_steps": f" --max-env-steps {2 * summary['env_steps']}",
        "max_wall": f" --max-wall-s {2 * math.ceil(summary['wall_s'])}",
    }
    return limits.get(summary["stopped_because"], "")


OPTION = "seeds"
MOST_SEEDS = 1000
WIDE = 72
"""A terminal with fewer columns shows a shorter table."""


def take_seeds(asked: Sequence[Assignment]) -> tuple[int | None, list[Assignment]]:
    """Return the number of seeds asked for, None without one, and the other options."""
    found = [a for a in asked if canonical(a.written) == OPTION]
    others = [a for a in asked if canonical(a.written) != OPTION]
    if not found:
        return None, others
    text = "" if found[-1].value is None else str(found[-1].value)
    if not (text.isdecimal() and 1 <= int(text) <= MOST_SEEDS):
        raise UsageError(
            f"--seeds = {text or 'nothing'}: must be a whole number from 1 to {MOST_SEEDS}, the "
            "number of seeds to train with. The seeds count up from --seed."
        )
    return int(text), others


def train_with_seeds(config: RunConfig, num_seeds: int, told: Sequence[str]) -> Outcome:
    """Train with several seeds. told: sentences to print once the settings are accepted."""
    from tianji.seeds.screen import make_screen
    from tianji.seeds.train import train_seeds

    def tell() -> None:
        for text in filter(None, told):
            people().print(text, markup=False, soft_wrap=True)

    screen = make_screen(config.observe.display)
    return show_seeds(train_seeds(config, num_seeds, screen, on_accepted=tell))


def show_seeds(report: SeedsSummary) -> Outcome:
    """Print the closing block of several seeds and return the outcome."""
    style, exit_code = _ending(report)
    table = _seeds_table(report["runs"], is_wide=people().width >= WIDE)
    parts: list[RenderableType] = [table, "", fact_list(_seeds_facts(report))]
    num_seeds = len(report["runs"]) + len(report["not_started"])
    title = f"{report['env']}, {report['algorithm']}, {counted(num_seeds, 'seed')}"
    show_block(title, style, parts, _commands(report))
    return Outcome({**report}, exit_code)


def _ending(report: SeedsSummary) -> tuple[str, int]:
    """Return colour and exit code: a failure counts most, then an interruption."""
    because = report["stopped_because"]
    if "failed" in because:
        return "red", 1
    if "interrupted" in because or report["not_started"]:
        return "yellow", 130
    return ("green" if set(because) == {"target_reached"} else "yellow"), 0


def _seeds_table(runs: Sequence[Summary], is_wide: bool) -> Table:
    more = ("steps", "time to target", "time") if is_wide else ()
    table = figures_table(("seed", "result", "return", *more))
    table.columns[0].style, table.columns[1].justify = "cyan", "left"
    for run in runs:
        row = [str(run["seed"]), ENDINGS[run["stopped_because"]].words]
        row += [to_return(run["mean_return_100"]), f"{run['env_steps']:,}"]
        row += [to_seconds(run["time_to_target_s"]), to_seconds(run["wall_s"])]
        table.add_row(*row[: len(table.columns)])
    return table


def _seeds_facts(report: SeedsSummary) -> dict[str, str]:
    facts = {"return": _in_words(report["mean_return_100"], "", digits=RETURN_DIGITS)}
    if report["time_to_target_s"] is not None:
        facts["time to target"] = _in_words(report["time_to_target_s"], " s", digits=3)
    for run in report["runs"]:
        if run["stopped_because"] == "failed":
            facts[f"seed {run['seed']} failed"] = run["first_cause"]
    if left := report["not_started"]:
        facts["not started"] = f"seed {', '.join(map(str, left))}"
    facts["all seeds"] = to_seconds(report["total_s"])
    facts["folder"] = f"{report['run_dir']}/"
    if report["picture"] is not None:
        facts["picture"] = report["picture"]
    return facts


def _in_words(spread: Spread | None, unit: str, digits: int) -> str:
    if spread is None:
        return NO_EPISODE
    values = spread["median"], spread["min"], spread["max"]
    median, low, high = (f"{to_value(value, digits)}{unit}" for value in values)
    return f"median {median}, from {low} to {high} ({counted(spread['count'], 'seed')})"


def _commands(report: SeedsSummary) -> dict[str, str]:
    """Return what to do next with the best seed, and with seeds that did not finish."""
    commands = {}
    saved = [run for run in report["runs"] if run["checkpoint"]]
    rated = [(run["mean_return_100"], run) for run in saved if run["mean_return_100"] is not None]
    if rated:
        _, best = max(rated, key=lambda found: found[0])
        commands[f"tianji eval {run_name(best['run_dir'])}"] = "evaluate the best seed"
    for run in saved:
        if run["stopped_because"] in ("interrupted", "failed"):
            commands[f"tianji resume {run_name(run['run_dir'])}"] = f"continue seed {run['seed']}"
    return commands
