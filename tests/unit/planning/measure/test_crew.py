"""The processes of a profile: what is told when one of them cannot go on."""

import os
import subprocess
import sys
from contextlib import ExitStack

import pytest

from tests.fakes.scripted import SPACES
from tests.unit.planning.plans import config, plan_for
from tianji.engines.spec import RunSpec
from tianji.engines.supervise.process import WorkerProcess
from tianji.errors import WorkerLost
from tianji.planning.measure.crew import Crew, Measure, RecordUnroll, Span


@pytest.fixture
def hire(monkeypatch):
    """Starts a member whose process runs a few lines; commands come from R, reports go to W."""
    with ExitStack() as crews:

        def hire(code, timeout_s=60.0):
            asked = config(supervise={"heartbeat_timeout_s": timeout_s})
            crew = crews.enter_context(Crew(RunSpec(asked, plan_for(asked), SPACES, "X", None)))

            def start(message, _module):
                read, write = os.pipe()
                lines = f"import json, os; R, W = {message.fds['commands']}, {write}\n{code}"
                popen = subprocess.Popen(
                    [sys.executable, "-c", lines],
                    pass_fds=[write, message.fds["commands"]], start_new_session=True,
                )  # fmt: skip
                os.close(write)
                return WorkerProcess(popen, read, os.memfd_create("stack"))

            monkeypatch.setattr(WorkerProcess, "start", start)
            return crew.start("actor-bench-0", 1)

        yield hire


def test_a_command_is_answered(hire):
    member = hire("""
from multiprocessing.connection import Connection
parent = Connection(R)
parent.send(parent.recv().threads + 1)
parent.poll(None)""")
    span = Span(begin_ns=0, end_ns=1, is_alone=True)
    assert member.ask(Measure(span=span, threads=41), int) == 42


def test_an_error_is_told_by_its_last_line_first_with_the_name_of_the_process(hire):
    member = hire("""
error = {"kind": "error", "text": "ValueError: no such level", "traceback": "in reset"}
os.write(W, json.dumps(error).encode() + b"\\n")""")
    with pytest.raises(WorkerLost) as caught:
        member.ask(RecordUnroll(), int)
    first, second, *rest = str(caught.value).splitlines()
    assert first == "ValueError: no such level"
    assert "actor-bench-0" in second
    assert rest == ["in reset"]


def test_one_that_dies_is_told(hire):
    with pytest.raises(WorkerLost, match=r"actor-bench-0.* killed by SIGKILL"):
        hire("os.kill(os.getpid(), 9)").ask(RecordUnroll(), int)


def test_one_that_is_silent_is_told(hire):
    silent = "import signal, time; signal.signal(10, signal.SIG_IGN); time.sleep(60)"
    member = hire(silent, timeout_s=0.3)
    with pytest.raises(WorkerLost, match="heartbeat_timeout_s"):
        member.ask(RecordUnroll(), int)
