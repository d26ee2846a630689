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


def trained(engine, algorithm, realisation):
    return run(
        env="CartPole-v1",
        engine=engine,
        algorithm={**algorithm, "realisation": realisation},
        num_actors=3,
        num_envs=6,
        max_env_steps=900,
        seed=3,
    )


@pytest.mark.parametrize(
    ("engine", "algorithm"), [("local", SYNC), ("inline", SYNC), ("virtual", RENNALA)]
)
def test_server_and_all_reduce_lead_to_the_same_parameters(engine, algorithm):
    server = trained(engine, algorithm, "server")
    reduced = trained(engine, algorithm, "all-reduce")
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
    least = 1 if engine == "local" else 3 * (reduced["version"] - 1)
    assert least <= reduced["gather"]["own_steps"] <= 3 * reduced["version"]


def test_a_killed_actor_and_a_killed_learner_are_replaced_and_take_part_again(tmp_path):
    command = Command(
        tmp_path, "train", "rennala-nigt", "--algorithm.realisation", "all-reduce",
        "--algorithm.unroll-length", "20", "--algorithm.m", "6", "--num-actors", "3",
        "--num-envs", "6", *FOREVER, "--observe.period-s", "0.05",
        "--no-tensorboard", "--checkpoint.period-s", "0.2", "--run", "run",
    )  # fmt: skip

    def latest():
        return command.records()[-1]

    def goes_on():
        command.wait_for_version(latest()["version"] + 10)

    def all_take_steps():
        before = latest()
        steps = before["gather"]["own_steps"] + 10 * 3
        command.wait_for(lambda: latest()["gather"]["own_steps"] >= steps, "steps of all actors")

    def is_replaced(worker):
        old = command.workers()[worker]
        old.kill()
        goes_on()
        command.wait_for(lambda: command.workers().get(worker, old).pid != old.pid, worker)

    command.wait_for_version(10)
    is_replaced("actor-1")
    counts = latest()["gather"]["counts"][1]
    command.wait_for(lambda: latest()["gather"]["counts"][1] > counts, "gradients of actor-1")
    all_take_steps()
    is_replaced("learner")
    all_take_steps()
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.finish()
    assert code == 130
    assert "Fatal Python error" not in err
    assert command.summary()["restarts"] == 2, err


def test_rennala_goes_on_without_a_rank_that_hangs_and_with_it_again(tmp_path):
    command = Command(
        tmp_path, "train", "rennala-nigt", "--algorithm.realisation", "all-reduce",
        "--algorithm.unroll-length", "20", "--algorithm.m", "6", "--num-actors", "3",
        "--num-envs", "6", *FOREVER, "--observe.period-s", "0.05",
        "--no-tensorboard", "--run", "run",
    )  # fmt: skip

    def made():
        return command.records()[-1]["gather"]["counts"][1]

    command.wait_for(
        lambda: command.records() and min(command.records()[-1]["gather"]["counts"]) > 0,
        "gradients of all, who are one team then",
    )
    hung = command.workers()["actor-1"]
    hung.suspend()
    command.wait_for_version(command.records()[-1]["version"] + 20)
    before = made()
    command.wait_for_version(command.records()[-1]["version"] + 5)
    assert made() == before
    hung.resume()
    command.wait_for(lambda: made() > before, "gradients of the one that hung")
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.finish()
    assert code == 130
    assert "actor-1 does not answer the all-reduce" in err
    assert command.summary()["restarts"] == 0
