"""A worker that holds learner and actors is killed on a GPU: the run goes on."""

import signal

import pytest
import torch

from tests.system.commands import FOREVER, Command

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

WORDS = [
    "catch-pixels-ppo", *FOREVER, "--device", "cuda", "--run", "run", "--no-tensorboard",
    "--observe.period-s", "0.05", "--checkpoint.period-s", "0.2", "--plan.source", "rule",
]  # fmt: skip


@pytest.mark.parametrize("inference", ["learner", "served", "actor-gpu"])
def test_a_run_goes_on_after_the_death_of_its_learner(inference, tmp_path):
    command = Command(tmp_path, "train", *WORDS, "--inference", inference)
    folder = command.run_dir / "checkpoints"
    command.wait_for(lambda: any(folder.glob("v*[1-9]")), "checkpoint")
    before = command.workers()
    before["learner"].kill()

    def is_replaced():
        now = command.workers()
        return "learner" in now and now["learner"] != before["learner"]

    command.wait_for(is_replaced, "replacement")
    command.wait_for_version(command.version() + 5)
    if inference == "actor-gpu":
        others = {name: process.pid for name, process in before.items() if name != "learner"}
        assert {name: command.workers()[name].pid for name in others} == others
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.finish()
    assert code == 130
    told = " ".join(err.split())  # lines may be broken
    assert "learner: killed by SIGKILL. Restart 1 of 5." in told
    is_told = "Actors and learner share that process and start again" in told
    assert is_told == (inference == "learner")
    summary = command.summary()
    assert (summary["restarts"], summary["inference"]) == (1, inference)
    assert summary["env_steps"] > 0
