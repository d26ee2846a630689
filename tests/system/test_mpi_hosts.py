"""MPI over hosts of their own: groups train together without a common disk; hosts are cut off, lost
and silent."""

import json
import signal
import time

import psutil
import pytest

from benchmarks.namespaces import Network, why_not
from tests.system.commands import FOREVER, SMALL, Command, groups_that_work
from tests.system.mpi_jobs import MPIRUN, on_hosts

pytest.importorskip("mpi4py", reason="needs mpi4py")
pytestmark = [
    pytest.mark.skipif(MPIRUN is None, reason="needs mpirun"),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]
GROUPS = ["--engine", "mpi", "--num-groups", "2", "--combine", "average"]
HEAD, OTHER = 1, 2
"""Hosts of the two ranks; mpirun runs on host 0."""
ENDS_S = 15


class Job:
    """`mpirun -n 2 tianji ...` over two hosts."""

    def __init__(self, network, folder):
        self.network, self.folder = network, folder / "work"
        self.folder.mkdir()
        self._prefix = on_hosts(network, [HEAD, OTHER], self.folder, folder / "shell")

    def start(self, verb, *words):
        return Command(self.folder, verb, *words, prefix=self._prefix)

    def train(self, *words, env="CartPole-v1"):
        return self.start("train", *SMALL, *GROUPS, "--env", env, *words)

    def train_until_saved(self):
        """Start a run that does not end; return it when both groups work and have saved."""
        command = self.train(*FOREVER)
        command.wait_for(lambda: groups_that_work(command) == {0, 1}, "both groups")
        command.wait_for((command.run_dir / "checkpoints.json").exists, "set of checkpoints")
        return command

    def resume(self, *words):
        return self.start("resume", "run", *words)

    def ranks_on(self, host):
        """The processes of ranks on a host."""
        found = [psutil.Process(pid) for pid in self.network.processes(host)]
        return [process for process in found if process.cmdline()[1:3] == ["-m", "tianji"]]


@pytest.fixture
def job(tmp_path):
    with Network(3) as network:
        yield Job(network, tmp_path)


def steps_of_groups(record):
    return sum(figures["env_steps"] for figures in record["groups"])


def end_within(command, seconds, since_s):
    """Wait for the end of mpirun. Its exit code is not looked at: it is 0 after a host was lost."""
    command.process.wait(timeout=since_s + seconds - time.monotonic())


def test_groups_without_a_common_disk_train_stop_and_go_on(job):
    command = job.train_until_saved()
    command.process.send_signal(signal.SIGUSR1)  # mpirun passes it on
    code, _, err = command.finish()
    assert code == 130, err
    summary = command.summary()
    assert summary["stopped_because"] == "interrupted"
    assert summary["env_steps"] == steps_of_groups(summary)
    names = [job.network.names[host] for host in (HEAD, OTHER)]
    assert [host["host"] for host in summary["hosts"]] == [
        f"rank {rank} ({name})" for rank, name in enumerate(names)
    ]
    done = summary["env_steps"]
    again = job.resume("--max-env-steps", str(done + 2000))
    code, _, err = again.finish()
    assert code == 0, err
    summary = again.summary()
    assert summary["stopped_because"] == "max_env_steps"
    assert summary["env_steps"] == steps_of_groups(summary) >= done + 2000
    steps = [record["env_steps"] for record in again.records()]
    assert steps == sorted(steps), "the second session counts on from the first"


@pytest.mark.slow
@pytest.mark.parametrize("host", [HEAD, OTHER])
def test_a_host_that_is_killed_ends_the_job_and_resume_goes_on(job, host):
    command = job.train_until_saved()
    since_s = time.monotonic()
    job.network.kill(host)
    end_within(command, ENDS_S, since_s)
    command.finish()
    sets = json.loads((command.run_dir / "checkpoints.json").read_text())["sets"]
    done = sets[-1]["env_steps"] + 4000
    again = job.resume("--max-env-steps", str(done))
    code, _, err = again.finish()
    assert code == 0, err
    summary = again.summary()
    assert summary["stopped_because"] == "max_env_steps"
    lost = summary["env_steps"] - steps_of_groups(summary)
    assert done <= summary["env_steps"] < done + 4000
    assert 0 <= lost < done, "steps after the last checkpoint were made, and stay counted"


@pytest.mark.slow
def test_a_cable_may_be_out_for_5_s(job):
    command = job.train_until_saved()
    job.network.set_cable(OTHER, "down")
    time.sleep(5)
    job.network.set_cable(OTHER, "up")
    seen = command.records()[-1]["groups"][1]["env_steps"]
    command.wait_for(
        lambda: command.records()[-1]["groups"][1]["env_steps"] > seen + 2000, "more of group 1"
    )
    command.process.send_signal(signal.SIGUSR1)
    code, _, err = command.finish()
    assert code == 130, err
    summary = command.summary()
    assert summary["restarts"] == 0
    assert summary["env_steps"] == steps_of_groups(summary)


@pytest.mark.slow
def test_a_cable_that_stays_out_ends_the_job(job):
    command = job.train_until_saved()
    since_s = time.monotonic()
    job.network.set_cable(OTHER, "down")
    end_within(command, ENDS_S, since_s)
    while job.ranks_on(OTHER):
        assert time.monotonic() - since_s < ENDS_S, "the rank that was cut off ends too"
        time.sleep(0.1)
    job.network.kill(OTHER)  # a daemon of mpirun is left there
    command.finish()


@pytest.mark.slow
def test_a_rank_that_hangs_ends_the_job_and_is_named(job):
    command = job.train_until_saved()
    since_s = time.monotonic()
    (rank,) = job.ranks_on(OTHER)
    rank.suspend()
    end_within(command, ENDS_S, since_s)
    _, _, err = command.finish()
    name = job.network.names[OTHER]
    assert f"Lost rank 1 ({name}): it has been silent for 11 s." in command.summary()["first_cause"]
    assert command.summary()["stopped_because"] == "failed", err


@pytest.mark.slow
def test_an_environment_that_one_host_does_not_have_is_named_with_the_host(job, monkeypatch):
    (job.folder / "worlds.py").write_text(
        "import gymnasium\n\n\ndef make():\n    return gymnasium.make('CartPole-v1')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(job.folder))
    since_s = time.monotonic()
    command = job.train(*FOREVER, env="worlds:make")
    code, _, _ = command.finish()
    assert code != 0
    assert time.monotonic() - since_s < 2 * ENDS_S, "starting it takes a part of that"
    cause = command.summary()["first_cause"]
    assert cause.startswith(f"On rank 1 ({job.network.names[OTHER]}): Environment 'worlds:make'")
    assert "No module named 'worlds'" in cause
