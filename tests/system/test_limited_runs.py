"""A run with a rate limiter on processes: any of them may die, and the window holds afterwards."""

import signal

import pytest

from tests.system.commands import FOREVER, Command
from tests.system.test_free_runs import WORDS, it_goes_on_without


@pytest.mark.slow
def test_it_goes_on_when_a_process_dies(tmp_path):
    command = Command(tmp_path, "train", *WORDS, "--balance", "limiter", *FOREVER)
    folder = command.run_dir / "checkpoints"
    command.wait_for(lambda: any(folder.glob("v*[1-9]")), "checkpoint")
    it_goes_on_without(command, "actor-1")
    it_goes_on_without(command, "learner")
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.finish()
    assert code == 130
    for victim in ("actor-1", "learner"):
        assert f"{victim}: killed by SIGKILL. Restart 1 of 5." in err
    last = command.records()[-1]
    assert abs(last["ratio"]["actual"] / last["ratio"]["target"] - 1) < 0.1
