"""A worker's process: how it is started, how its reports are read, and how it is ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import cloudpickle

from tianji.engines.spec import RunSpec
from tianji.programs.program import Program
from tianji.reports import Report

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
ONE_HEAP = {"MALLOC_ARENA_MAX": "1"}
"""Threads that only save now and then would keep heaps of their own: 6 MB more after minutes."""
SHORT_WAITS = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "1000"}
"""Torch's threads look for some 10 us whether the others are ready, and then wait asleep. Looking
for milliseconds, as they do elsewhere, costs others their core: with other work on the machine, two
threads made a tenth of the updates of SAC that one made. Asleep at once, they hardly gain from each
other: each of the short operations of an update would wait for a thread to wake up."""
STACK_DUMP_S = 0.5
MOST_STACK_BYTES = 1 << 16


def encode_run(spec: RunSpec, program: Program | None = None) -> bytes:
    """Return what all workers of a run are told: a line of JSON, and behind it what JSON cannot
    hold. That is the spaces, the program, and a callable that makes the environment, if one was
    given."""
    facts = {
        "config": spec.config.model_dump(mode="json"),
        "plan": spec.plan.model_dump(mode="json"),
        "run_dir": str(spec.run_dir),
        "group": spec.group,
        "has_head": spec.has_head,
        "start_from": None if spec.start_from is None else str(spec.start_from),
        "address": spec.address,
        "reports_episodes": spec.reports_episodes,
    }
    env = None if isinstance(spec.env, str) else spec.env
    pickled: bytes = cloudpickle.dumps((spec.spaces, env, program))
    return json.dumps(facts).encode() + b"\n" + pickled


@dataclass(frozen=True, slots=True)
class StartMessage:
    """Everything a worker is told."""

    worker: str
    run: bytes
    """The message for all workers (encode_run); encoded once, because there may be thousands."""
    threads: int
    fds: dict[str, int]
    resume: bool = False
    is_restart: bool = False
    shares_cores: bool = False
    """The run has more threads than cores."""
    shown_as: str = ""
    """Name in the list of processes; empty: that of the worker."""

    def encode(self, report_fd: int, stack_fd: int) -> bytes:
        """Return a line of JSON for this worker, followed by what all are told. stack_fd: where it
        writes its stack when it is asked to (SIGUSR1)."""
        head = {
            "worker": self.worker,
            "parent_pid": os.getpid(),
            "report_fd": report_fd,
            "stack_fd": stack_fd,
            "threads": self.threads,
            "fds": self.fds,
            "sys_path": [os.path.abspath(entry) for entry in sys.path],
            "resume": self.resume,
            "is_restart": self.is_restart,
        }
        return json.dumps(head).encode() + b"\n" + self.run


class WorkerProcess:
    """One running worker. `report_fd` becomes readable when it reports, `pid_fd` when it ends."""

    def __init__(self, popen: subprocess.Popen[bytes], report_fd: int, stack_fd: int) -> None:
        self._popen = popen
        self._stack_fd = stack_fd
        self.pid = popen.pid
        self.report_fd = report_fd
        self.pid_fd = os.pidfd_open(popen.pid)
        self.is_killed = False
        self._killed_because = ""
        self._unread = b""
        os.set_blocking(report_fd, False)

    @staticmethod
    def start(message: StartMessage, module: str = "tianji.engines.worker") -> WorkerProcess:
        """`module` is what runs in it: the worker of a run, or of a profile."""
        report_read, report_write = os.pipe()
        start_fd, stack_fd = os.memfd_create("tianji-start"), os.memfd_create("tianji-stack")
        os.write(start_fd, message.encode(report_write, stack_fd))
        os.lseek(start_fd, 0, os.SEEK_SET)
        variables = {**dict.fromkeys(THREAD_VARIABLES, str(message.threads)), **ONE_HEAP}
        if message.shares_cores:
            variables |= SHORT_WAITS
        popen = subprocess.Popen(
            [sys.executable, "-m", module, str(start_fd), message.shown_as or message.worker],
            stdin=subprocess.DEVNULL,
            stdout=2,  # standard output is for the command's own line
            pass_fds=[start_fd, stack_fd, report_write, *message.fds.values()],
            env={**os.environ, **variables},
            start_new_session=True,  # a terminal's Ctrl-C reaches the supervisor alone
        )
        os.close(start_fd)
        os.close(report_write)
        return WorkerProcess(popen, report_read, stack_fd)

    def read_reports(self) -> list[Report]:
        """Return the reports that have arrived in full."""
        while True:
            try:
                data = os.read(self.report_fd, 1 << 16)
            except BlockingIOError:
                break
            if not data:
                break
            self._unread += data
        *lines, self._unread = self._unread.split(b"\n")
        return [json.loads(line) for line in lines]

    def has_ended(self) -> bool:
        return self._popen.poll() is not None

    def how_it_ended(self) -> str:
        code = self._popen.returncode
        if self._killed_because:
            return self._killed_because
        if code is not None and code < 0:
            known = {number.value for number in signal.Signals}
            name = signal.Signals(-code).name if -code in known else f"signal {-code}"
            return f"killed by {name}"
        return f"ended with exit code {code}"

    def wait(self) -> int:
        """Wait until it has ended; return its exit code."""
        return self._popen.wait()

    def ask_for_stack(self) -> str:
        """Have a silent worker write down where it hangs; return that."""
        if not self.has_ended():
            os.kill(self.pid, signal.SIGUSR1)
            deadline = time.monotonic() + STACK_DUMP_S
            while not self.has_ended() and time.monotonic() < deadline:
                self._popen_wait(0.1)
        return os.pread(self._stack_fd, MOST_STACK_BYTES, 0).decode(errors="replace")

    def _popen_wait(self, timeout_s: float) -> None:
        try:
            self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return

    def kill(self, because: str = "") -> None:
        """Kill it and wait until it is gone."""
        self.send_kill(because)
        self._popen.wait()

    def send_kill(self, because: str = "") -> None:
        """Kill it without waiting, so that many can die at the same time."""
        if not self.has_ended() and not self.is_killed:
            self._killed_because = because
            self.is_killed = True
            self._kill_group()

    def _kill_group(self) -> None:
        """The worker leads a session: simulators that its environments started go with it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        self._kill_group()
        for fd in (self.report_fd, self.pid_fd, self._stack_fd):
            os.close(fd)
