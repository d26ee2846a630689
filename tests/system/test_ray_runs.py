"""Runs on Ray: to a target, through the loss of an agent, and refused with a reason."""

import signal

import psutil
import pytest

from tests.system.commands import FOREVER, SMALL, Command
from tianji.engines.agents import ray_hosts
from tianji.errors import UsageError

pytest.importorskip("ray", reason="needs Ray")
ON_RAY = ["--engine", "ray", "--env", "CartPole-v1"]


def agent_of(command):
    """The process of the agent, and those that it has started."""
    for process in psutil.Process(command.process.pid).children(recursive=True):
        if process.cmdline()[:1] and process.cmdline()[0].startswith("ray::Agent"):
            return process
    return None


@pytest.mark.slow
def test_a_run_goes_on_when_its_agent_is_lost(tmp_path):
    command = Command(tmp_path, "train", *SMALL, *FOREVER, *ON_RAY)
    command.wait_for_version(20)
    folder = command.run_dir / "checkpoints"
    command.wait_for(lambda: any(folder.glob("v*[1-9]")), "checkpoint")
    agent = agent_of(command)
    workers = agent.children(recursive=True)
    agent.kill()
    command.wait_for_version(command.version() + 40)
    assert not any(worker.is_running() for worker in workers), "they die with their agent"
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.finish()
    assert code == 130
    assert "Restart 1 of 5, from the last checkpoint." in err
    summary = command.summary()
    assert (summary["engine"], summary["restarts"]) == ("ray", 1)
    assert summary["lag_versions"]["max"] <= 1


@pytest.mark.slow
def test_an_algorithm_that_gathers_gradients_runs(tmp_path):
    words = ["--engine", "ray", "--max-env-steps", "4000", "--target-return", "none"]
    command = Command(tmp_path, "train", "rennala-nigt", "--run", "run", *words)
    code, _, err = command.finish()
    assert code == 0, err
    summary = command.summary()
    assert summary["stopped_because"] == "max_env_steps"
    assert sum(summary["gather"]["counts"]) >= summary["version"] > 0


def test_a_cluster_that_is_not_there_is_named(monkeypatch):
    with pytest.raises(UsageError, match=r"no Ray cluster at ray_address '127.0.0.1:1'"):
        ray_hosts.RayHosts("127.0.0.1:1").__enter__()


def test_without_ray_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install 'tianji\[ray\]'"):
        ray_hosts.RayHosts("auto")
