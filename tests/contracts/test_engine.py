"""Every engine runs the same small program: it stops, reports, saves and resumes alike."""

import pytest

from tests.fakes.specs import make_spec
from tianji.checkpoint.load import latest, read_checkpoint
from tianji.engines.agents.mpi.hosts import OwnAgent
from tianji.engines.interface import ENGINES
from tianji.engines.signals import StopRequest
from tianji.programs.one_group import program_for

HOSTS = ("ray", "mpi")
"""Engines whose groups an agent runs; here it is one in this process."""
STEPS = 8  # of a version: 4 rows, 2 environments


class Recorder:
    """An observer that keeps all reports, and may ask the engine to stop at one kind of report."""

    def __init__(self, stop_at=None):
        self.reports = []
        self.gauges = None
        self.stop = StopRequest()
        self._stop_at = stop_at

    def report(self, report):
        self.reports.append(report)
        if report["kind"] == self._stop_at:
            self._stop_at = None
            self.stop.ask()

    def watch(self, gauges, pids=None, now_ns=None, settle=None):
        self.gauges = gauges

    def tick(self):
        pass

    def of_kind(self, kind):
        return [report for report in self.reports if report["kind"] == kind]


SLOW = ("ray",)
"""Here it is the same as `mpi`; test_ray_runs.py has real ones."""


@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name
        for name in sorted(ENGINES)
    ]
)
def run(request, tmp_path):
    """Run the program on one engine; returns the outcome and the observer."""
    name = request.param

    def run_engine(resume=False, stop_at=None, **values):
        settings = {"engine": name, "env_kwargs": {"length": 10_000}, **values}
        spec, observer = make_spec(tmp_path, **settings), Recorder(stop_at)
        program = program_for(spec.config, spec.plan)
        more = (
            {"start_agent": lambda group, is_wanted: OwnAgent("this host")} if name in HOSTS else {}
        )
        engine = ENGINES[name](spec, program, observer, **more)
        try:
            return engine.run(observer.stop, resume), observer
        finally:
            observer.stop.close()

    run_engine.run_dir = tmp_path
    return run_engine


def saved_version(run_dir):
    return read_checkpoint(latest(run_dir).path).version


def test_it_stops_when_asked_to_continues_from_its_checkpoint_and_reports(run):
    stopped, _ = run(stop_at="metrics", max_env_steps=10**9)
    version = it_stops_between_two_versions_and_saves(run.run_dir, stopped)
    last = version + 5
    outcome, observer = run(resume=True, max_env_steps=last * STEPS)
    (restored,) = observer.of_kind("restored")
    assert restored["record"] == {"version": version, "env_steps": version * STEPS}
    it_stops_at_max_env_steps_and_saves(run.run_dir, outcome, last)
    it_reports(observer, outcome)


def it_stops_between_two_versions_and_saves(run_dir, outcome):
    assert outcome["because"] == "interrupted"
    version = outcome["record"]["version"]
    assert saved_version(run_dir) == version
    assert outcome["record"]["env_steps"] == version * STEPS
    return version


def it_stops_at_max_env_steps_and_saves(run_dir, outcome, version):
    assert outcome["because"] == "max_env_steps"
    assert (outcome["restarts"], outcome["first_cause"]) == (0, None)
    assert outcome["record"]["env_steps"] == version * STEPS
    assert saved_version(run_dir) == outcome["record"]["version"] == version


def it_reports(observer, outcome):
    kinds = [report["kind"] for report in observer.reports]
    assert kinds.index("built") < kinds.index("metrics")
    assert "checkpoint_written" in kinds
    assert observer.of_kind("metrics")[-1]["record"]["version"] <= outcome["record"]["version"]
    assert set(observer.gauges.rows) == {"actor-0", "buffer", "learner"}
    assert set(outcome["record"]["busy_share"]) == set(observer.gauges.rows)
