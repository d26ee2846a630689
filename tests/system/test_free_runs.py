"""A run with a free balance on processes: any of them may die, and nobody waits in between."""

import signal

import pytest

from tests.system.commands import FOREVER, Command
from tests.system.runs import APEX, run

WORDS = [
    "--algorithm", "apex", "--env", "CartPole-v1", "--num-envs", "4", "--num-actors", "2",
    "--unroll-length", "8", "--batch-size", "16", "--updates-per-version", "2",
    "--warmup-steps", "64", "--replay-size", "2000", "--run", "run", "--observe.period-s", "0.05",
    "--no-tensorboard", "--checkpoint.period-s", "0.2",
]  # fmt: skip


def test_it_goes_on_when_a_process_dies(tmp_path):
    command = Command(tmp_path, "train", *WORDS, *FOREVER)
    folder = command.run_dir / "checkpoints"
    command.wait_for(lambda: any(folder.glob("v*[1-9]")), "checkpoint")
    assert set(command.workers()) == {"actor-0", "actor-1", "learner"}
    it_goes_on_without(command, "actor-1")
    it_goes_on_without(command, "learner")
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.finish()
    assert code == 130
    for victim in ("actor-1", "learner"):
        assert f"{victim}: killed by SIGKILL. Restart 1 of 5." in err
    last = command.records()[-1]
    assert last["ratio"]["target"] is None and last["ratio"]["actual"] > 0


def it_goes_on_without(command, victim):
    before = command.workers()[victim]
    before.kill()
    command.wait_for(lambda: command.workers().get(victim) not in (None, before), "new one")
    steps = command.records()[-1]["env_steps"]
    command.wait_for(lambda: command.records()[-1]["env_steps"] > steps + 2000, "more steps")
    command.wait_for_version(command.version() + 20)


def test_in_one_process_it_has_about_the_ratio_of_dqn(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shared = {"engine": "inline", "algorithm": APEX, "max_env_steps": 3000, "num_actors": 2}
    free = run(balance="free", **shared)
    paced = run(balance="paced", max_lag=0, **shared)
    assert free["ratio"]["actual"] == pytest.approx(paced["ratio"]["target"], rel=0.05)
