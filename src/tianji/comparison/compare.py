"""Contestants side by side: equal resources, fair turns, one folder that can be continued.

    report = run_comparison(contest, make_screen("auto"))    # runs/compare-.../STYLE-sSEED

Every contestant and seed is an ordinary run. One runs at a time, with all cores, and contestants
take turns within a seed. A comparison that was stopped continues with the runs that are missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import cast

from tianji.checkpoint.durable import replace_json, to_plain
from tianji.comparison import words
from tianji.comparison.bound import Bound, bound_of, find_profile
from tianji.comparison.contest import Contest, Turn, refusal
from tianji.comparison.folder import (
    COMPARISON_FILE,
    open_folder,
    read_before,
    set_aside,
    settings_of,
)
from tianji.comparison.greedy import greedy_returns
from tianji.comparison.neighbours import machine_use, others_cores
from tianji.comparison.outcomes import (
    RunFigures,
    finished_summary,
    is_finished,
    read_figures,
)
from tianji.comparison.provenance import Provenance, combine, provenance
from tianji.comparison.report import Comparison, style_figures
from tianji.config.machine import Machine, read_machine
from tianji.config.run import SEED_LIMIT, RunConfig
from tianji.display.stream import tell_progress
from tianji.errors import UsageError
from tianji.planning.groups import check_groups, divide, plan_groups
from tianji.planning.planner import plan_run
from tianji.records import Summary
from tianji.run_folder.folder import RunFolder, read_plan
from tianji.run_folder.paths import RUNS
from tianji.seeds.one import ChildRun
from tianji.seeds.run_all import Screen, run_all
from tianji.seeds.train import planned_by_rule
from tianji.wording import counted


def run_comparison(
    contest: Contest, screen: Screen, name: str | None = None, base: Path = RUNS
) -> Comparison:
    """Run what is missing and report all of it. name: of the folder, to continue a comparison.

    A person who stops it gets a report of the runs that have ended.
    """
    machine = read_machine()
    check(contest, machine)
    folder = open_folder(contest, name, base)
    with RunFolder(folder):
        ended = {turn.name: finished_summary(folder / turn.name) for turn in contest.turns}
        done = {name: summary for name, summary in ended.items() if summary is not None}
        known = _known_before(folder)
        missing = [name for name in ended if name not in done]
        known.origins |= dict.fromkeys(missing, provenance())
        if missing:
            replace_json(folder / COMPARISON_FILE, _report(contest, done, folder, machine, known))
            used = machine_use()
            done |= _run_missing(contest, folder, machine, screen, done)
            known.others_cores = max(known.others_cores, others_cores(used, machine_use()))
        known.greedy = greedy_returns(done, folder, known.greedy)
        report = _report(contest, done, folder, machine, known)
        if any(is_finished(run) for run in report["runs"]):
            from tianji.comparison.picture import PICTURE_FILE, draw

            draw(report, folder / PICTURE_FILE)
            report["picture"] = str(folder / PICTURE_FILE)
        replace_json(folder / COMPARISON_FILE, report)
    return report


@dataclass(slots=True)
class _Known:
    """What a report tells beside the summaries and the records of its runs."""

    others_cores: float
    origins: dict[str, Provenance]
    greedy: dict[str, float | None]
    """Returns of the last policies without exploration, by the name of the run."""


def _known_before(folder: Path) -> _Known:
    before = read_before(folder)
    # A return is missing where a comparison was broken off before the policy was played, or was
    # made when policies were not played.
    played = [run for run in before.get("runs", ()) if run.get("greedy_return") is not None]
    greedy = {Path(run["run_dir"]).name: run["greedy_return"] for run in played}
    return _Known(before.get("others_cores", 0.0), before.get("origins", {}), greedy)


def check(contest: Contest, machine: Machine) -> None:
    """Raise UsageError with everything that is wrong, before any process starts."""
    if contest.seeds[-1] >= SEED_LIMIT:
        raise UsageError(
            f"{len(contest.seeds)} seeds from {contest.seeds[0]}: the last one must be below "
            f"{SEED_LIMIT}. Use a smaller --seed."
        )
    mistakes = {}
    for one in contest.contestants:
        try:
            _check_one(one.config, machine)
        except UsageError as error:
            mistakes[one.name] = str(error)
    if mistakes:
        raise refusal(mistakes, len(contest.contestants))


def _check_one(config: RunConfig, machine: Machine) -> None:
    if config.engine in ("ray", "mpi"):
        raise UsageError(
            f"engine = {config.engine}: a comparison runs on this machine, one run at a time. Use "
            "--engine local, inline or virtual."
        )
    check_groups(config)
    with tell_progress(config.observe.display) as tell:
        env = config.envs or config.env
        plan_groups(
            planned_by_rule(config), machine, lambda one, share: plan_run(one, env, share, tell)
        )


def _run_missing(
    contest: Contest, folder: Path, machine: Machine, screen: Screen, done: dict[str, Summary]
) -> dict[str, Summary]:
    """Run what has not come to its end; return the summaries of what was started."""
    missing = [turn for turn in contest.turns if turn.name not in done]
    for turn in missing:
        set_aside(folder / turn.name)
    children = [ChildRun(turn.config, folder, turn.name) for turn in missing]
    run_all(children, (machine.cores,), screen, _title(contest), folder)
    return {child.label: child.summary() for child in children if child.is_started}


def _title(contest: Contest) -> str:
    names = ", ".join(one.name for one in contest.contestants)
    env = contest.reference.config.env_name
    return f"{env} · {names} · {counted(len(contest.seeds), 'seed')}, one run at a time"


def _report(
    contest: Contest, done: dict[str, Summary], folder: Path, machine: Machine, known: _Known
) -> Comparison:
    lags = [one.config.max_lag for one in contest.contestants]
    runs = [
        _figures(turn, done[turn.name], folder / turn.name, lags, machine, known)
        for turn in contest.turns
        if turn.name in done
    ]
    target = contest.reference.config.target_return
    styles = style_figures(contest.contestants, runs)
    ended = {Path(run["run_dir"]).name for run in runs if is_finished(run)}
    missing = [turn.name for turn in contest.turns if turn.name not in ended]
    lengths = [len(run["curve"]) for run in runs if is_finished(run)]
    points = round(median(lengths)) if lengths else 0
    made_by = [origin for name, origin in known.origins.items() if name in ended]
    origin = combine(made_by or [provenance()])
    report = Comparison(
        command=contest.command,
        env=contest.reference.config.env_name,
        target_return=target,
        reference=contest.reference.name,
        seeds=list(contest.seeds),
        others_cores=known.others_cores,
        missing=missing,
        styles=styles,
        says=words.say_all(styles, target),
        notes=[
            *words.notes(styles, missing, target, points, known.others_cores),
            *words.notes_of_origin(origin),
        ],
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        **origin,
        run_dir=str(folder),
        picture=None,
        settings={**read_before(folder).get("settings", {}), **settings_of(contest)},
        origins=known.origins,
        runs=runs,
    )
    return cast("Comparison", to_plain(report))


def _figures(
    turn: Turn,
    summary: Summary,
    run_dir: Path,
    lags: Sequence[int],
    machine: Machine,
    known: _Known,
) -> RunFigures:
    bound = _bound(turn.config, run_dir, lags, machine) if is_finished(summary) else None
    return read_figures(turn.contestant, summary, run_dir, bound, known.greedy.get(turn.name))


def _bound(config: RunConfig, run_dir: Path, lags: Sequence[int], machine: Machine) -> Bound | None:
    share = divide(machine, config.num_learners)[0]
    profile = find_profile(config, lags, share)
    if profile is None:
        return None
    return bound_of(profile, read_plan(run_dir), len(share.cores), config)
