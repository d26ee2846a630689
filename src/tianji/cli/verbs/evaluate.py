"""`tianji eval RUN` and `tianji export RUN`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter, validators

from tianji.cli.output import Outcome, people, tell_fallback
from tianji.run_folder.paths import find_run
from tianji.wording import counted, to_return

VIDEO_FILE = "video.mp4"
GREEDY = "Actions were greedy. Training samples its actions; --stochastic does so here, too."
SAMPLED = "Actions were sampled, as in training."


def evaluate(
    run: str,
    /,
    *,
    episodes: Annotated[int, Parameter(validator=validators.Number(gte=1))] = 10,
    seed: Annotated[int, Parameter(validator=validators.Number(gte=0))] = 0,
    video: Annotated[bool | Path, Parameter(negative="")] = False,
    checkpoint: str = "best",
    stochastic: Annotated[bool, Parameter(negative="")] = False,
    cut_after_steps: Annotated[int | None, Parameter(validator=validators.Number(gte=1))] = None,
) -> Outcome:
    """Evaluate a trained policy, and film it.

    Actions are greedy: the best or most likely ones. Training samples its actions, so its returns
    may differ; --stochastic samples here, too.

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
    stochastic
        Sample actions as training does.
    cut_after_steps
        Cut episodes that have not ended after this many steps; by default, the run's
        evaluate.cut_after_steps (27,000 unless it was set).
    """
    run_dir = find_run(run)
    film = run_dir / VIDEO_FILE if video is True else video or None
    from tianji.trained.evaluate import evaluate_run

    report = evaluate_run(
        run_dir,
        episodes,
        seed,
        film,
        checkpoint,
        stochastic=stochastic,
        cut_after_steps=cut_after_steps,
    )
    exit_code = tell_fallback(report["note"])
    _show(report)
    return Outcome({"run": str(run_dir), **report}, exit_code)


def _show(report: Mapping[str, Any]) -> None:
    console = people()
    told = {key: to_return(report[key]) for key in ("mean", "std", "median", "min", "max")}
    console.print(
        f"[bold]{told['mean']} ± {told['std']}[/] mean return over "
        f"{counted(report['episodes'], 'episode')} (median {told['median']}, "
        f"lowest {told['min']}, highest {told['max']})"
    )
    for name, mean in report.get("returns_by_env", {}).items():
        console.print(f"{to_return(mean):>10}  {name}", markup=False)
    console.print(SAMPLED if report["stochastic"] else GREEDY)
    if report["cut_episodes"]:
        console.print(
            f"{report['cut_episodes']} of {counted(report['episodes'], 'episode')} did not end "
            f"within {report['cut_after_steps']:,} steps (--cut-after-steps): such an episode is "
            "cut there, and its return is what it has collected by then."
        )
    if report["video"]:
        console.print(f"Video: {report['video']}", markup=False)


def export(run: str, /, *, output: Path | None = None, checkpoint: str = "best") -> Outcome:
    """Write a trained policy as ONNX, checked against the policy itself.

    Parameters
    ----------
    run
        A name under runs/, or the path of a run folder.
    output
        The file to write; default: policy.onnx in the run folder.
    checkpoint
        The checkpoint to use: best, latest, or its name or version.
    """
    run_dir = find_run(run)
    from tianji.trained.export import export_run

    report = export_run(run_dir, output, checkpoint)
    exit_code = tell_fallback(report["note"])
    people().print(f"Wrote {report['output']}", markup=False)
    return Outcome({"run": str(run_dir), **report}, exit_code)
