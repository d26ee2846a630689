"""`tianji status [RUN]`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.text import Text

from tianji.checkpoint.load import list_checkpoints
from tianji.checkpoint.sets import main_folder
from tianji.cli.output import Outcome, people
from tianji.cli.pages.tables import run_name, sentence_list
from tianji.display.live import ASCII, UNICODE
from tianji.display.panel import Panel
from tianji.display.phrases import ENDINGS
from tianji.explain.explain import explain_status, prediction_error
from tianji.explain.words import Explanation
from tianji.observe.summary import RunStatus, State, read_status
from tianji.records import NO_RATES, Metrics
from tianji.run_folder.paths import find_run, list_runs, newest_run, runs_in_words
from tianji.wording import to_ago

STYLES: dict[State, str] = {
    "running": "green",
    "finished": "green",
    "interrupted": "yellow",
    "failed": "red",
    "lost": "red",
}


def status(run: str | None = None) -> Outcome:
    """Show what a run is doing or did, and what limits its speed.

    Parameters
    ----------
    run
        A name under runs/, or the path of a run folder. Default: the run that was written to last.
    """
    found = read_status(find_run(newest_run() if run is None else run))
    explanation = explain_status(found)
    console = people()
    if run is None and len(known := list_runs()) > 1:
        console.print(runs_in_words(known), markup=False)
    console.print(Text(f"{found.run_dir.name}: {_state_text(found)}", style=STYLES[found.state]))
    marks = ASCII if console.options.ascii_only else UNICODE
    if found.record is not None:
        panel = Panel(found.config, marks, found.first_return)
        panel.update(found.record if found.summary is None else _at_rest(found.record))
        lines = panel.lines(console.width, [])
        console.print(Text("\n", no_wrap=True, overflow="ellipsis").join(lines))
    console.print(sentence_list(explanation.sentences, marks.dot))
    return Outcome(_report(found, explanation))


def _at_rest(record: Metrics) -> Metrics:
    """Return the last record of a run that has ended, without the activities of its roles."""
    return {**record, "activity": {}}


def _report(found: RunStatus, explanation: Explanation) -> dict[str, Any]:
    """Return what scripts read."""
    predicted, error = found.plan.prediction, None
    if predicted is not None:  # over the whole run once it has ended, until then over seconds
        error = found.summary["prediction_error"] if found.summary is not None else None
        rates = found.record["rates_per_s"] if found.record is not None else NO_RATES
        error = error or prediction_error(predicted, rates)
    return {
        "run": found.run_dir.name,
        "run_dir": found.run_dir,
        "state": found.state,
        "age_s": found.age_s,
        "gauges": found.record or {},
        "critical_path": explanation.critical_path,
        "explanation": list(explanation.sentences),
        "predicted": predicted.model_dump() if predicted is not None else None,
        "prediction_error": error,
        "summary": found.summary,
    }


def _state_text(found: RunStatus) -> str:
    ago = None if found.age_s is None else to_ago(found.age_s)
    if found.state == "running":
        return "running. " + ("No record yet." if ago is None else f"Last record {ago}.")
    last = "There is no record." if ago is None else f"Last record {ago}."
    if found.summary is None:
        return f"not running; it did not shut down cleanly. {last} {_way_on(found.run_dir)}"
    ending = ENDINGS[found.summary["stopped_because"]].words
    return f"{found.state} ({found.summary.get('first_cause', ending)}). {last}"


def _way_on(run_dir: Path) -> str:
    """Say how a run that was killed goes on: from a checkpoint, or not at all."""
    if not list_checkpoints(main_folder(run_dir)):
        return "Nothing was saved, so it cannot be continued: start it again with `tianji train`."
    return f"`tianji resume {run_name(str(run_dir))}` continues it."
