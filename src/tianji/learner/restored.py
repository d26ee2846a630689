"""The version and the report of a learner that continues from a checkpoint."""

from __future__ import annotations

from pathlib import Path

from tianji.checkpoint.load import Choice, list_checkpoints
from tianji.checkpoint.schema import folder_name, version_of
from tianji.observe.run_log import highest_version
from tianji.records import RestoredReport, RestorePoint

BEFORE_THE_FIRST = -1
"""Version and environment steps of a learner that found no checkpoint and begins anew."""


def version_after(run_dir: Path, saved: int, published: int) -> int:
    """Return the version to continue as. Versions never fall: those published in this session, and
    those that a killed session has written to the folder, are skipped.

    saved: the version of the checkpoint. published: the highest one of this session, -1 if none.
    """
    checkpoints = [version_of(path.name) or 0 for path in list_checkpoints(run_dir)]
    written = max([highest_version(run_dir), *checkpoints])
    return max(saved, published + 1, written + 1 if written > saved else 0)


def restored_report(saved: int, env_steps: int, version: int, choice: Choice) -> RestoredReport:
    """Tell the observer where the run goes back to, and a person what that costs."""
    text = f"{choice.note} Continuing from checkpoint {folder_name(saved)}".lstrip()
    if version > saved:
        text += f" as version {version}; what was learned after that checkpoint is lost"
    record = RestorePoint(version=saved, env_steps=env_steps)
    return RestoredReport(kind="restored", role="learner", text=f"{text}.", record=record)


def begun_anew_report(version: int) -> RestoredReport:
    """Return the report of a learner that died before its first checkpoint."""
    text = f"The learner died before its first checkpoint and begins anew as version {version}."
    record = RestorePoint(version=BEFORE_THE_FIRST, env_steps=BEFORE_THE_FIRST)
    return RestoredReport(kind="restored", role="learner", text=text, record=record)
