"""A worker's process: what it is told, what it says, and how its end is told."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.fakes.scripted import SPACES
from tests.unit.planning.plans import config, plan_for
from tianji.engines import worker
from tianji.engines.spec import RunSpec
from tianji.engines.supervise.process import StartMessage, WorkerProcess, encode_run
from tianji.programs.one_group import program_for

FOR_EVER = "import signal\nwhile True: signal.pause()"


def message(tmp_path, env="CartPole-v1", worker="actor-0", **more):
    asked = config(num_actors=2)
    spec = RunSpec(asked, plan_for(asked), SPACES, env, tmp_path)
    run = encode_run(spec, program_for(asked, spec.plan))
    return StartMessage(worker=worker, run=run, **{"threads": 1, "fds": {}, **more})


def start(code):
    """A process of a few lines in place of a worker; it may write reports to descriptor W."""
    read, write = os.pipe()
    popen = subprocess.Popen(
        [sys.executable, "-S", "-c", f"import os; W = {write}\n{code}"],
        pass_fds=[write], start_new_session=True,
    )  # fmt: skip
    os.close(write)
    return WorkerProcess(popen, read, os.memfd_create("stack"))


def finish(process):
    process._popen.wait(120)
    assert process.has_ended()


def test_the_start_message_is_a_line_of_json_and_what_json_cannot_hold(tmp_path):
    made = message(tmp_path, threads=3, fds={"slots": 5}, resume=True)
    line, _, run = made.encode(report_fd=9, stack_fd=10).partition(b"\n")
    head = json.loads(line)
    assert (head["worker"], head["threads"], head["report_fd"]) == ("actor-0", 3, 9)
    assert (head["fds"], head["resume"], head["is_restart"]) == ({"slots": 5}, True, False)
    assert head["parent_pid"] == os.getpid()
    assert all(os.path.isabs(entry) for entry in head["sys_path"])
    spec, program = worker.read_run(run)
    assert (spec.plan.num_actors, spec.config.algorithm.unroll_length) == (2, 4)
    assert (spec.spaces, spec.env, spec.run_dir) == (SPACES, spec.config.env, tmp_path)
    assert program == program_for(spec.config, spec.plan)


@pytest.mark.parametrize("shares_cores", [True, False])
def test_threads_that_share_cores_look_only_shortly_whether_the_others_are_ready(
    tmp_path, monkeypatch, shares_cores
):
    given, popen = [], subprocess.Popen

    def start(*_, env, **__):
        given.append(env)
        return popen(["true"])

    monkeypatch.setattr(subprocess, "Popen", start)
    waits = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    for name in waits:
        monkeypatch.delenv(name, raising=False)
    process = WorkerProcess.start(message(tmp_path, shares_cores=shares_cores))
    finish(process)
    process.close()
    told = tuple(given[0].get(name) for name in waits)
    assert told == (("passive", "1000") if shares_cores else (None, None))


def test_a_callable_environment_travels_by_value(tmp_path):
    answer = 42
    made = message(tmp_path, env=lambda: answer)
    spec, _ = worker.read_run(made.run)
    assert spec.env() == 42


def test_reports_come_line_by_line_however_they_are_cut():
    process = start(r"""
os.write(W, b'{"kind": "note", "te')
os.write(W, b'xt": "one"}\n{"kind": "note", "text": "two"}\n{"kind"')
""")
    finish(process)
    assert [report["text"] for report in process.read_reports()] == ["one", "two"]
    assert process.read_reports() == [], "half a line is no report"
    process.close()


def test_a_worker_with_nothing_to_say_is_not_waited_for():
    process = start(FOR_EVER)
    assert process.read_reports() == []
    assert not process.has_ended()
    process.kill()


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("raise SystemExit(3)", "ended with exit code 3"),
        ("", "ended with exit code 0"),
        ("os.kill(os.getpid(), 9)", "killed by SIGKILL"),
        ("os.abort()", "killed by SIGABRT"),
    ],
)
def test_how_a_worker_ended_is_told_in_words(code, how):
    process = start(f"import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n{code}")
    finish(process)
    assert process.how_it_ended() == how


def test_a_worker_that_we_killed_ended_for_our_reason():
    process = start(FOR_EVER)
    process.kill("no sign of life for 60 s")
    assert process.has_ended() and process.is_killed
    assert process.how_it_ended() == "no sign of life for 60 s"


def test_killing_one_that_has_ended_changes_nothing():
    process = start("raise SystemExit(3)")
    finish(process)
    process.kill("too late")
    assert not process.is_killed
    assert process.how_it_ended() == "ended with exit code 3"
    assert process.ask_for_stack() == ""


def test_a_silent_worker_is_asked_where_it_hangs():
    process = start(r"""
import signal
signal.signal(signal.SIGUSR1, lambda *_: (os.write(W, b'{"kind": "here"}\n'), os._exit(0)))
os.write(W, b'{"kind": "ready"}\n')
signal.pause()
""")
    reports = []
    while not reports:
        reports = process.read_reports()
    process.ask_for_stack()
    finish(process)
    assert process.read_reports() == [{"kind": "here"}]


def test_a_real_worker_writes_its_stack_where_the_supervisor_reads_it():
    stack_fd, (read, write) = os.memfd_create("stack"), os.pipe()
    code = f"""
import faulthandler, os, signal
faulthandler.register(signal.SIGUSR1, file={stack_fd})
os.write({write}, b"x")
def hang():
    while True: signal.pause()
hang()
"""
    popen = subprocess.Popen(
        [sys.executable, "-S", "-c", code], pass_fds=[stack_fd, write], start_new_session=True
    )
    os.close(write)
    assert os.read(read, 1) == b"x", "it is ready"
    process = WorkerProcess(popen, read, stack_fd)
    while " in hang" not in process.ask_for_stack():
        pass  # a busy machine may need more than one question
    process.kill()
    process.close()


def test_its_end_can_be_waited_for_and_its_descriptors_are_closed():
    process = start("")
    finish(process)
    fds = (process.report_fd, process.pid_fd, process._stack_fd)
    assert all(os.fstat(fd) for fd in fds)
    process.close()
    for fd in fds:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


def test_a_real_worker_reports_its_exception_with_its_name_and_ends_with_1(tmp_path):
    process = WorkerProcess.start(message(tmp_path))
    finish(process)
    (report,) = process.read_reports()
    assert (report["kind"], report["role"]) == ("error", "actor-0")
    assert report["text"] == "KeyError: 'control'", "it was given no shared memory"
    assert report["traceback"].startswith("Traceback")
    assert process.how_it_ended() == "ended with exit code 1"


def test_a_worker_without_its_parent_ends_itself(tmp_path):
    made = message(tmp_path)
    line, _, rest = made.encode(report_fd=1, stack_fd=2).partition(b"\n")
    orphan = json.dumps({**json.loads(line), "parent_pid": 1}).encode()
    start_fd = os.memfd_create("start")
    os.write(start_fd, orphan + b"\n" + rest)
    os.lseek(start_fd, 0, os.SEEK_SET)
    done = subprocess.run(
        [sys.executable, "-m", "tianji.engines.worker", str(start_fd)],
        pass_fds=[start_fd], check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL


def test_who_gives_way_is_scheduled_as_background_work():
    program = (
        "import os; from tianji.engines.worker import give_way; give_way(); "
        "print(os.sched_getscheduler(0) == os.SCHED_BATCH)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"


def test_a_system_that_forbids_to_give_way_is_worked_with_all_the_same(monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(worker.os, "sched_setscheduler", refuse)
    worker.give_way()
