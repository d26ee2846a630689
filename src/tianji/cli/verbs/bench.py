"""`tianji bench comm`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from tianji.cli.output import Outcome, people
from tianji.cli.pages.tables import figures_table
from tianji.errors import UsageError
from tianji.wording import to_percent

PICTURE = Path("bench-comm.png")
COLUMNS = ("size", "actors", "sample", "10,000 in", "msg/s", "MB/s", "memcpy", "CPU us", "model")
LEGEND = (
    "10,000 in: time to collect 10,000 messages. memcpy: share of the speed at which one core "
    "copies memory. CPU us: processor time per message, sender + receiver. model: predicted time."
)


def bench(
    subject: Literal["comm"],
    /,
    *,
    size: int | None = None,
    actors: int | None = None,
    sample_time: float | None = None,
    messages: int | None = None,
    copy: Annotated[bool, Parameter(negative="")] = False,
    check: Annotated[bool, Parameter(negative="")] = False,
    output: Path | None = None,
) -> Outcome:
    """Measure how fast experience moves on this machine, compared with copying memory.

    With --size this measures one point. Without it, it measures and draws a sweep over sizes,
    actors and sample times.

    Parameters
    ----------
    subject
        What to measure: comm, the transport of experience from actors to the buffer.
    size
        Bytes of one message, from 1.
    actors
        Number of sending processes; default: 1.
    sample_time
        Seconds in which an actor makes one message; default: 0.
    messages
        Messages to receive and keep; default: 10000.
    copy
        Let the receiver copy every message instead of keeping its slot.
    check
        Compare every byte of every message; this makes the measured speed meaningless.
    output
        The picture that the sweep writes; default: bench-comm.png.
    """
    from tianji.bench.experiment import measure
    from tianji.bench.point import Point

    if size is None:
        if (actors, sample_time, messages, copy, check) != (None, None, None, False, False):
            raise UsageError(
                "--actors, --sample-time, --messages, --copy and --check need --size, as in "
                "`tianji bench comm --size 524288 --actors 2`."
            )
        return _sweep(output or PICTURE)
    if output is not None:
        raise UsageError("--output is for the sweep: a measurement with --size draws nothing.")
    asked = Point(
        size_bytes=size,
        num_actors=1 if actors is None else actors,
        sample_time_s=sample_time or 0.0,
        num_messages=10_000 if messages is None else messages,
        is_copying=copy,
        is_checking=check,
    )
    report = measure(asked)
    _show([report])
    if check:
        people().print(f"All {report['received']} messages arrived complete, once and in order.")
    return Outcome(report)


def _sweep(output: Path) -> Outcome:
    if not output.parent.is_dir():
        raise UsageError(f"--output is '{output}', but there is no folder '{output.parent}'.")
    from tianji.bench.sweep import sweep
    from tianji.figures.style import save
    from tianji.figures.sweep import draw_sweep

    report = sweep(lambda text: people().print(text, markup=False))
    _show(report["points"])
    for sentence in report["in_words"]:
        people().print(sentence, markup=False)
    save(draw_sweep(report), output)
    people().print(f"Wrote {output}", markup=False)
    return Outcome({**report, "picture": str(output)})


def _show(points: list[dict[str, Any]]) -> None:
    from tianji.figures.transports import size_text

    table = figures_table(COLUMNS)
    table.padding = (0, 1, 0, 0)
    for point in points:
        predicted = point.get("predicted_s_per_10k")
        table.add_row(
            size_text(point["size_bytes"]),
            str(point["actors"]),
            f"{point['sample_time_s'] * 1e3:g} ms",
            f"{point['collection_s_per_10k']:.3g} s",
            f"{point['messages_per_s']:,.0f}",
            f"{point['mb_per_s']:,.0f}",
            f"{to_percent(point['share_of_memcpy'])}",
            f"{point['sender_cpu_us']:.3g} + {point['receiver_cpu_us']:.2g}",
            "" if predicted is None else f"{predicted:.3g} s",
        )
    people().print(table)
    people().print(LEGEND, style="dim", markup=False)
