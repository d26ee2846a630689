"""Inference by a server for actors in other processes: the same run, and any process may die."""

import signal

import pytest

from tests.system.commands import FOREVER, SMALL, Command
from tests.system.runs import DQN, IMPALA, PPO, PRIORITISED, run
from tests.system.test_placements import differ
from tianji.errors import UsageError

CASES = {
    "prioritised": {"env": "CartPole-v1", "algorithm": PRIORITISED},
    "ppo, continuous actions": {"env": "Pendulum-v1", "algorithm": PPO, "num_actors": 1},
}
SLOW = {
    "ppo": {"env": "CartPole-v1", "algorithm": PPO},
    "ppo, continuous actions of two actors": {"env": "Pendulum-v1", "algorithm": PPO},
    "impala": {"env": "CartPole-v1", "algorithm": IMPALA},
    "dqn": {"env": "CartPole-v1", "algorithm": DQN},
}
"""They get the same kinds of answers."""


@pytest.mark.parametrize(
    "case", [*CASES, *(pytest.param(case, marks=pytest.mark.slow) for case in SLOW)]
)
def test_without_lag_served_actors_give_the_same_bits(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = {"num_actors": 2, "max_lag": 0, "max_env_steps": 2000, **(CASES | SLOW)[case]}
    inline = run(engine="inline", **asked)
    served = run(engine="local", inference="served", **asked)
    assert (served["inference"], served["restarts"]) == ("served", 0)
    assert served["waited_s"]["actor-0"]["answers"] > 0
    assert served["busy_share"]["inference"] > 0
    for key in ("env_steps", "updates", "version", "episodes", "lag_versions", "ratio"):
        assert inline[key] == served[key], key
    assert differ(inline, served) == []


def test_training_goes_on_when_a_process_dies(tmp_path):
    words = ["--env", "CartPole-v1", "--inference", "served", "--num-actors", "2"]
    command = Command(tmp_path, "train", *SMALL, *FOREVER, *words)
    folder = command.run_dir / "checkpoints"
    command.wait_for(lambda: any(folder.glob("v*[1-9]")), "checkpoint")
    assert set(command.workers()) == {"inference", "learner", "actor-0", "actor-1"}
    victims = ("inference", "actor-0", "learner")
    for victim in victims:
        it_alone_is_replaced(command, victim)
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.finish()
    assert code == 130
    for victim in victims:
        assert f"{victim}: killed by SIGKILL. Restart 1 of 5." in err


def it_alone_is_replaced(command, victim):
    before = command.workers()
    before[victim].kill()
    command.wait_for(lambda: command.workers().get(victim) not in (None, before[victim]), "new one")
    command.wait_for_version(command.version() + 20)
    now = command.workers()
    assert {name for name in now if now[name].pid != before[name].pid} == {victim}


def test_a_server_takes_processes():
    with pytest.raises(UsageError, match=r"served.*takes processes.*--engine local"):
        run(**SLOW["ppo"], engine="inline", inference="served")
