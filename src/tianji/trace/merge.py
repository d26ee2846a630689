"""The spans of all roles as one file in the Trace Event Format, which Perfetto and Chrome read.

It runs in the supervisor after the last role has ended.
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tianji.trace.flows import Flow, idle_shares, item_flows, policy_flows
from tianji.trace.spans import (
    MARKS,
    NOTHING,
    SPANS_FOLDER,
    SUFFIX,
    Kind,
    RoleSpans,
    item_name,
    read_spans,
)

TRACE_FILE = "trace.json.gz"
_COMPRESSION = 1
_LINES_AT_ONCE = 1 << 12

NAMES = {kind: kind.name.lower().replace("_", " ") for kind in Kind if kind not in MARKS}
NAMES |= {Kind.BEGIN: "write", Kind.SEND: "write"}
_ITEM_KINDS = (Kind.INFER, Kind.STEP, Kind.BEGIN, Kind.SEND, Kind.RECEIVE)
_PHASES = {2: "sf", 3: "stf"}


class Merged(NamedTuple):
    """The result of `merge_spans`."""

    path: Path
    idle_share: dict[str, float]
    fell_out: dict[str, int]
    """Records by role that are missing because the role's ring was full."""


def merge_spans(run_dir: Path) -> Merged | None:
    """Write the trace of all span files of a run and remove them; None if there are none.

    The trace that a run left before it was resumed is kept.
    """
    folder = run_dir / SPANS_FOLDER
    files = sorted(folder.glob(f"*{SUFFIX}"))
    roles = [role for role in map(read_spans, files) if role.spans().any()]
    merged = None
    if roles:
        path = _free_name(run_dir)
        draft = path.with_name(f".{path.name}.draft")
        facts = _facts(roles)
        with gzip.open(draft, "wb", compresslevel=_COMPRESSION) as file:
            file.write(f'{{"displayTimeUnit":"ns","otherData":{json.dumps(facts)},'.encode())
            file.write(b'"traceEvents":[\n')
            for piece in _pieces(_events(roles)):
                file.write(piece)
            file.write(b"\n]}\n")
        os.replace(draft, path)
        idle = {name: role["idle_share"] for name, role in facts["roles"].items()}
        merged = Merged(path, idle, facts["fell_out"])
    for path in files:
        path.unlink()
    with contextlib.suppress(OSError):
        folder.rmdir()
    return merged


def merge_in_words(run_dir: Path) -> str:
    """Merge the spans and say what was written; a full disk does not end the run's command."""
    try:
        merged = merge_spans(run_dir)
    except OSError as error:
        return f"The trace is not written: {error}. Its spans stay in {run_dir / SPANS_FOLDER}/."
    if merged is None:
        return "The trace is empty: no role did anything."
    idle = ", ".join(f"{name} {share * 100:.0f} %" for name, share in merged.idle_share.items())
    text = f"Trace {merged.path}, for https://ui.perfetto.dev. Idle: {idle}."
    if merged.fell_out:
        counts = ", ".join(f"{name} {count:,}" for name, count in merged.fell_out.items())
        text += f" Only the newest spans are in it; older ones fell out: {counts}."
    return text


def _free_name(run_dir: Path) -> Path:
    names = (f"trace-{n}.json.gz" if n > 1 else TRACE_FILE for n in itertools.count(1))
    return next(path for name in names if not (path := run_dir / name).exists())


def _facts(roles: Sequence[RoleSpans]) -> dict[str, Any]:
    fell_out: Counter[str] = Counter()
    for role in roles:
        fell_out[role.role] += role.fell_out
    return {
        "clock_origin_ns": _origin_ns(roles),
        "fell_out": dict(+fell_out),
        "roles": {
            name: {"busy_s": s.busy_s, "idle_s": s.idle_s, "idle_share": s.idle_share}
            for name, s in idle_shares(roles).items()
        },
    }


def _origin_ns(roles: Sequence[RoleSpans]) -> int:
    return min(int(role.start_ns.min()) for role in roles)


def _pieces(lines: Iterator[str]) -> Iterator[bytes]:
    """Join many lines: writing them one by one takes as long as making them."""
    separator = ""
    while many := list(itertools.islice(lines, _LINES_AT_ONCE)):
        yield (separator + ",\n".join(many)).encode()
        separator = ",\n"


def _events(roles: Sequence[RoleSpans]) -> Iterator[str]:
    """Yield one JSON object per event; the number of a track is that of its role."""
    origin_ns = _origin_ns(roles)
    yield from _track_names(roles)
    for track, role in enumerate(roles, 1):
        yield from _span_events(role, track, origin_ns)
    for number, flow in enumerate(itertools.chain(item_flows(roles), policy_flows(roles)), 1):
        yield from _flow_events(flow, number, roles, origin_ns)


def _track_names(roles: Sequence[RoleSpans]) -> Iterator[str]:
    members: dict[int, list[str]] = defaultdict(list)
    for role in roles:
        members[role.pid].append(role.role)
    for pid, names in members.items():
        name = {"name": " + ".join(names)}
        yield json.dumps({"ph": "M", "name": "process_name", "pid": pid, "args": name})
    for track, role in enumerate(roles, 1):
        where = {"ph": "M", "pid": role.pid, "tid": track}
        yield json.dumps({**where, "name": "thread_name", "args": {"name": role.role}})
        yield json.dumps({**where, "name": "thread_sort_index", "args": {"sort_index": track}})


def _span_events(role: RoleSpans, track: int, origin_ns: int) -> Iterator[str]:
    """Yield nearly all of the file; repeated parts are formatted once per kind and subject."""
    heads = {
        int(kind): f'{{"ph":"X","name":"{name}","cat":"{role.role}","pid":{role.pid},'
        f'"tid":{track},"ts":'
        for kind, name in NAMES.items()
    }
    keep = role.spans()
    start_ns = role.start_ns[keep] - origin_ns
    duration_ns = role.end_ns[keep] - role.start_ns[keep]
    times = *np.divmod(start_ns, 1000), *np.divmod(duration_ns, 1000)  # us, and the rest in ns
    lists = [column.tolist() for column in (role.kind[keep], role.subject[keep], *times)]
    abouts: dict[tuple[int, int], str] = {}
    for kind, subject, ts, ts_rest, dur, dur_rest in zip(*lists, strict=True):
        about = abouts.get((kind, subject))
        if about is None:
            about = abouts[kind, subject] = _about(Kind(kind), subject)
        yield f'{heads[kind]}{ts}.{ts_rest:03d},"dur":{dur}.{dur_rest:03d}{about}'


def _about(kind: Kind, subject: int) -> str:
    if subject == NOTHING:
        return "}"
    if kind not in _ITEM_KINDS:
        return f',"args":{{"version":{subject}}}}}'
    part = f',"part":"{kind.name.lower()}"' if NAMES[kind] == "write" else ""
    return f',"args":{{"item":"{item_name(subject)}"{part}}}}}'


def _flow_events(
    flow: Flow, number: int, roles: Sequence[RoleSpans], origin_ns: int
) -> Iterator[str]:
    subject = item_name(flow.subject) if flow.name == "item" else flow.subject
    for phase, place in zip(_PHASES[len(flow.places)], flow.places, strict=True):
        event = {"ph": phase, "name": flow.name, "cat": flow.name, "id": number}
        event |= {"bp": "e"} if phase == "f" else {}
        event |= {"pid": roles[place.role].pid, "tid": place.role + 1}
        event |= {"ts": (place.at_ns - origin_ns) / 1000, "args": {flow.name: subject}}
        yield json.dumps(event)
