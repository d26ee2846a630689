"""`tianji status RUN`."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from tianji.cli.output import Outcome, people
from tianji.display.numbers import ASCII, UNICODE, to_ago
from tianji.display.panel import Panel
from tianji.observe.status import RunStatus, State, read_status
from tianji.run_folder.paths import find_run

STYLES: dict[State, str] = {
    "running": "green",
    "finished": "green",
    "interrupted": "yellow",
    "failed": "red",
    "lost": "red",
}


def status(run: str) -> Outcome:
    """Show what a run is doing or did, and what limits its speed.

    Parameters
    ----------
    run
        A name under runs/, or the path of a run folder.
    """
    found = read_status(find_run(run))
    console = people()
    console.print(Text(f"{found.run_dir.name}: {_state_text(found)}", style=STYLES[found.state]))
    marks = ASCII if console.options.ascii_only else UNICODE
    if found.record:
        panel = Panel(found.config, marks, found.first_return)
        panel.update(found.record)
        lines = panel.lines(console.width, [])
        console.print(Text("\n", no_wrap=True, overflow="ellipsis").join(lines))
    sentences = Table.grid(padding=(0, 1, 0, 0))
    for sentence in found.explanation.sentences:
        sentences.add_row(marks.dot, Text(sentence))
    console.print(sentences)
    return Outcome(found.report())


def _state_text(found: RunStatus) -> str:
    last = "There is no record." if found.age_s is None else f"Last record {to_ago(found.age_s)}."
    if found.state == "running":
        return "running. " + ("No record yet." if found.age_s is None else last)
    if found.summary is None:
        sign = last if found.age_s is None else f"Its last sign of life was {to_ago(found.age_s)}."
        return f"not running; it did not shut down cleanly. {sign} `tianji resume` continues it."
    cause = found.summary.get("first_cause")
    because = found.summary["stopped_because"]
    return f"{found.state} ({cause or because}). {last}"
