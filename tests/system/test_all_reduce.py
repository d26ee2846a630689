"""The all-reduce realisation in whole runs: the same parameters as with a server, and faults."""

import signal

import numpy as np
import pytest

from tests.system.commands import FOREVER, Command
from tests.system.runs import run, saved_state

SYNC = {"name": "sync-nigt", "unroll_length": 20}
RENNALA = {"name": "rennala-nigt", "unroll_length": 20, "m": 4}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def trained(engine, algorithm, realisation, num_actors):
    return run(
        env="CartPole-v1",
        engine=engine,
        algorithm={**algorithm, "realisation": realisation},
        num_actors=num_actors,
        num_envs=6,
        max_env_steps=900,
        seed=3,
    )


@pytest.mark.parametrize(
    ("engine", "algorithm", "num_actors"),
    [("local", SYNC, 2), ("inline", SYNC, 3), ("virtual", RENNALA, 3)],
)
def test_server_and_all_reduce_lead_to_the_same_parameters(engine, algorithm, num_actors):
    of_server = "inline" if engine == "local" else engine  # the same: test_placements.py
    server = trained(of_server, algorithm, "server", num_actors)
    reduced = trained(engine, algorithm, "all-reduce", num_actors)
    assert server["version"] == reduced["version"] > 4
    assert server["gather"]["counts"] == reduced["gather"]["counts"]
    one, other = saved_state(server["run_dir"]), saved_state(reduced["run_dir"])
    weights = [name for name in one if name.startswith((".weights", ".state.update"))]
    assert weights
    for name in weights:
        np.testing.assert_allclose(other[name], one[name], rtol=1e-6, atol=1e-7, err_msg=name)
    assert server["gather"]["own_steps"] == 0
    # The first version is read from the board; the last one may not have been begun. A process
    # that is kept from its core for long takes others from there too.
    least = 1 if engine == "local" else num_actors * (reduced["version"] - 1)
    assert least <= reduced["gather"]["own_steps"] <= num_actors * reduced["version"]


@pytest.mark.slow
def test_rennala_goes_on_when_a_rank_hangs_or_is_killed_and_with_it_again(tmp_path):
    command = Command(
        tmp_path, "train", "rennala-nigt", "--algorithm.realisation", "all-reduce",
        "--algorithm.unroll-length", "20", "--algorithm.m", "6", "--num-actors", "3",
        "--num-envs", "6", *FOREVER, "--observe.period-s", "0.05", "--env",
        "tianji.envs.worlds:Slow", "--env-kwargs.seconds", "0.0002", "--env-kwargs.length",
        "1000000", "--no-tensorboard", "--checkpoint.period-s", "0.2", "--run", "run",
    )  # fmt: skip
    command.wait_for(
        lambda: command.records() and min(gathered(command)["counts"]) > 0,
        "gradients of all, who are one team then",
    )
    it_goes_on_without_one_that_hangs_and_with_it_again(command, hung=1)
    is_replaced(command, "actor-1")
    counts = gathered(command)["counts"][1]
    command.wait_for(lambda: gathered(command)["counts"][1] > counts, "gradients of actor-1")
    all_take_steps(command)
    is_replaced(command, "learner")
    all_take_steps(command)
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.finish()
    assert code == 130
    assert "actor-1 does not answer the all-reduce" in err
    assert "Fatal Python error" not in err
    assert command.summary()["restarts"] == 2, err


def gathered(command):
    """What the run told of its rounds last."""
    return command.records()[-1]["gather"]


def goes_on(command, versions):
    command.wait_for_version(command.version() + versions)


def it_goes_on_without_one_that_hangs_and_with_it_again(command, hung):
    worker = command.workers()[f"actor-{hung}"]
    worker.suspend()
    goes_on(command, versions=20)
    before = gathered(command)["counts"][hung]
    goes_on(command, versions=5)
    assert gathered(command)["counts"][hung] == before
    worker.resume()
    command.wait_for(
        lambda: gathered(command)["counts"][hung] > before, "gradients of the one that hung"
    )
    assert command.workers()[f"actor-{hung}"].pid == worker.pid, "it was not replaced"


def is_replaced(command, worker):
    old = command.workers()[worker]
    old.kill()
    goes_on(command, versions=10)
    command.wait_for(lambda: command.workers().get(worker, old).pid != old.pid, worker)


def all_take_steps(command):
    steps = gathered(command)["own_steps"] + 10 * 3
    command.wait_for(lambda: gathered(command)["own_steps"] >= steps, "steps of all actors")
