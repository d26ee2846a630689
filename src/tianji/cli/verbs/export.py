"""`tianji export RUN`."""

from __future__ import annotations

from pathlib import Path

from tianji.cli.output import Outcome, people, tell_fallback
from tianji.run_folder.paths import find_run


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
