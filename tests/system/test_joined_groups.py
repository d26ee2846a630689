"""Groups that add up their gradients: one policy, and one fate of their learners."""

import signal

import pytest

from tests.system.commands import FOREVER, SMALL, Command
from tests.system.runs import differences, saved_state

JOINED = ["--env", "CartPole-v1", "--num-groups", "2", "--combine", "gradients"]


def weights_of_groups(command):
    """The last weights of each group."""
    groups = sorted((command.run_dir / "groups").iterdir())
    states = [saved_state(group) for group in groups]
    return [{k: x for k, x in state.items() if k.startswith(".weights")} for state in states]


def newest(command):
    return [
        max(path.name for path in (group / "checkpoints").glob("v*"))
        for group in sorted((command.run_dir / "groups").iterdir())
    ]


@pytest.mark.slow  # in short form with a killed learner: test_groups.py, and in one process
def test_all_groups_have_the_same_policy(tmp_path):
    command = Command(tmp_path, "train", *SMALL, *JOINED, "--max-env-steps", "4000")
    code, _, err = command.finish()
    assert code == 0, err
    one, other = weights_of_groups(command)
    assert one and differences(one, other) == []
    assert len(set(newest(command))) == 1, "they saved the same version"
    first, second = command.summary()["groups"]
    assert first["updates"] == second["updates"] > 0


@pytest.mark.slow  # in short form, with checkpoints at longer intervals: test_groups.py
@pytest.mark.parametrize("victim", ["0", "1"])
def test_learners_begin_again_together_when_one_dies(victim, tmp_path):
    command = Command(tmp_path, "train", *SMALL, *JOINED, *FOREVER)
    command.wait_for_version(20)
    command.wait_for(lambda: min(newest(command)) > "v00000000", "checkpoints")
    command.workers()[f"{victim}/learner"].kill()
    command.wait_for(
        lambda: len([e for e in command.events() if e["kind"] == "restart"]) == 2, "restarts"
    )
    command.wait_for_version(command.version() + 30)
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.finish()
    assert code == 130, err
    assert command.summary()["restarts"] == 2
    one, other = weights_of_groups(command)
    assert differences(one, other) == []
