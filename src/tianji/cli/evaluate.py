"""`tianji eval RUN`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from tianji.cli.output import Outcome, people
from tianji.config.runs import find_run

VIDEO_FILE = "video.mp4"


def evaluate(
    run: str,
    /,
    *,
    episodes: Annotated[int, Parameter(validator=validators.Number(gte=1))] = 10,
    seed: Annotated[int, Parameter(validator=validators.Number(gte=0))] = 0,
    video: Annotated[bool | Path, Parameter(negative="")] = False,
    checkpoint: str = "best",
) -> Outcome:
    """Evaluate a trained policy with greedy actions, and film it.

    Parameters
    ----------
    run
        A name under runs/, or the path of a run folder.
    episodes
        Episodes to play; if the run has several environments, in each of them.
    seed
        Seed of the first episode; training does not use these seeds.
    video
        Film the first episode; write the video to this file, or to the run folder.
    checkpoint
        The checkpoint to use: best, latest, or its name or version.
    """
    run_dir = find_run(run)
    film = run_dir / VIDEO_FILE if video is True else video or None
    from tianji.trained.evaluate import evaluate_run

    report = evaluate_run(run_dir, episodes, seed, film, checkpoint)
    console = people()
    if report.get("note"):
        console.print(f"Note: {report['note']}", markup=False)
    console.print(
        f"[bold]{report['mean']:.1f} ± {report['std']:.1f}[/] mean return over "
        f"{report['episodes']} episodes (median {report['median']:.1f}, "
        f"lowest {report['min']:.1f}, highest {report['max']:.1f})"
    )
    for name, mean in report.get("returns_by_env", {}).items():
        console.print(f"{mean:10.1f}  {name}", markup=False)
    if film:
        console.print(f"Video: {film}", markup=False)
    return Outcome({"run": str(run_dir), **report})
