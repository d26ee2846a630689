"""Runs with a queue of fixed size on processes: any of them may die, and a run goes on."""

import signal

import pytest

from tests.system.commands import FOREVER, Command
from tests.system.test_free_runs import it_goes_on_without

WORDS = [
    "--algorithm", "impala", "--env", "CartPole-v1", "--num-envs", "4", "--num-actors", "2",
    "--unroll-length", "8", "--queue-size", "6", "--plan.source", "rule", "--run", "run",
    "--observe.period-s", "0.05", "--no-tensorboard", "--checkpoint.period-s", "0.2",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("balance", ["blocking", pytest.param("dropping", marks=pytest.mark.slow)])
def test_it_goes_on_when_a_process_dies(balance, tmp_path):
    command = Command(tmp_path, "train", *WORDS, "--balance", balance, *FOREVER)
    folder = command.run_dir / "checkpoints"
    command.wait_for(lambda: any(folder.glob("v*[1-9]")), "checkpoint")
    it_goes_on_without(command, "actor-1")
    it_goes_on_without(command, "learner")
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.finish()
    assert code == 130
    for victim in ("actor-1", "learner"):
        assert f"{victim}: killed by SIGKILL. Restart 1 of 5." in err
    assert command.records()[-1]["ratio"] == {"target": 1.0, "actual": 1.0}
