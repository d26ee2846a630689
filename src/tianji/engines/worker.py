"""The one entry point of every process of the local engine.

    python -m tianji.engines.worker FD NAME

FD is a file that holds the start message: which worker this is, the run, and the file descriptors
of the shared memory that it inherits. NAME is for people who look at the list of processes. The
thread budget is in the environment before anything loads.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tianji.channels.reports import ReportPipe
from tianji.display.stream import unfailing
from tianji.errors import ReduceBroken
from tianji.importing import no_runs_while
from tianji.raised import error_in_words
from tianji.reports import Event

if TYPE_CHECKING:
    from tianji.engines.spec import RunSpec
    from tianji.programs.program import Program

PR_SET_PDEATHSIG = 1


def die_with_parent(parent_pid: int) -> None:
    """End this process when the supervisor ends, even by SIGKILL."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signal.SIGKILL)  # it was gone before we asked


def give_way() -> None:
    """Never interrupt another process on waking up. Where processes share a core, an actor that
    gets a grant would otherwise interrupt the learner that granted it."""
    with contextlib.suppress(OSError):  # a sandbox may forbid it
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def in_words(error: Exception) -> str:
    """Return what went wrong, and what to do about it where that is known."""
    text = error_in_words(error)
    if type(error).__name__ != "OutOfMemoryError":  # torch's; a worker may not have loaded it
        return text
    return (
        "The GPU has no memory left. Use a smaller --minibatch-size, fewer environments "
        f"(--num-envs), shorter unrolls (--unroll-length), or --device cpu. {text}"
    )


Work: TypeAlias = Callable[[dict[str, Any], bytes, ReportPipe], None]
"""The work of a process, given its own part of the start message and the part for all."""


def main(work: Work) -> None:
    with os.fdopen(int(sys.argv[1]), "rb") as file:
        head = json.loads(file.readline())
        run = file.read()
    die_with_parent(head["parent_pid"])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the supervisor decides what they mean
    # An environment that prints must not fail because the terminal was closed.
    sys.stdout, sys.stderr = unfailing(sys.stdout), unfailing(sys.stderr)
    faulthandler.enable()
    # The supervisor asks a silent worker where it is.
    faulthandler.register(signal.SIGUSR1, file=head["stack_fd"])
    sys.path[:0] = [entry for entry in head["sys_path"] if entry not in sys.path]
    reports = ReportPipe(head["report_fd"], head["worker"])
    try:
        work(head, run, reports)
        reports.flush()
    except ReduceBroken as error:  # another group's learner has died: this one starts again too
        reports(Event(kind="note", text=str(error)))
        reports.flush()
        os._exit(1)  # the collective's own threads may wait for the dead one for minutes
    except Exception as error:  # noqa: BLE001 - the one place where a worker's failure is caught
        text = in_words(error)
        reports(Event(kind="error", text=text, traceback=traceback.format_exc()))
        reports.flush()
        sys.exit(1)


def read_run(run: bytes) -> tuple[RunSpec, Program | None]:
    """Decode the part of a start message that all workers of a run are told."""
    import pickle  # the start message comes from our own parent, by an inherited descriptor

    from tianji.config.plan import RunPlan
    from tianji.config.run import RunConfig
    from tianji.engines.spec import RunSpec

    line, _, pickled = run.partition(b"\n")
    facts = json.loads(line)
    config = RunConfig.model_validate(facts["config"])
    plan = RunPlan.model_validate(facts["plan"])
    with no_runs_while("importing the environment's module in a process of another run"):
        spaces, env, program = pickle.loads(pickled)
    spec = RunSpec(
        config,
        plan,
        spaces,
        config.env if env is None else env,
        Path(facts["run_dir"]),
        facts["group"],
        facts["has_head"],
        None if facts["start_from"] is None else Path(facts["start_from"]),
        facts["address"],
        facts["reports_episodes"],
    )
    return spec, program


def _run(head: dict[str, Any], run: bytes, reports: ReportPipe) -> None:
    gc.disable()  # the collector would take a seventh of the time in which modules are loaded
    from tianji.engines.arithmetic import flush_tiny_numbers, use_threads
    from tianji.engines.assembly.wiring import SharedEnds
    from tianji.engines.running import WorkerRun

    flush_tiny_numbers()  # first: threads take it over when they are started
    use_threads(head["threads"])
    spec, program = read_run(run)
    assert program is not None, "the workers of a run are told its program"
    ends = SharedEnds(program, spec.plan, head["fds"])
    worker_run = WorkerRun(spec, program, ends, head["worker"], reports)
    if all(role.kind not in ("buffer", "learner") for role in program.roles_in(head["worker"])):
        give_way()
    if cores := program.worker(head["worker"]).cores:
        os.sched_setaffinity(0, cores)
    gc.freeze()  # what is loaded now stays; the collector need not walk it again and again
    gc.enable()
    worker_run.run(resume=head["resume"], is_restart=head["is_restart"])


if __name__ == "__main__":
    main(_run)
