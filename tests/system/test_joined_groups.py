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


@pytest.mark.slow
def test_learners_of_a_group_begin_again_together_and_other_groups_go_on(tmp_path):
    words = ["--env", "CartPole-v1", "--num-groups", "2", "--learners-per-group", "2"]
    command = Command(tmp_path, "train", *SMALL, *words, "--combine", "average", *FOREVER)
    command.wait_for((command.run_dir / "checkpoints.json").exists, "a set of checkpoints")
    command.wait_for(lambda: min(newest(command)) > "v00000000", "checkpoints")
    command.workers()["1/learner"].kill()

    def restarted():
        return sorted(e["role"] for e in command.events() if e["kind"] == "restart")

    command.wait_for(lambda: restarted() == ["0/learner", "1/learner"], "restarts")
    seen = command.records()[-1]["groups"]
    command.wait_for(
        lambda: all(
            now["env_steps"] > before["env_steps"] + 500
            for now, before in zip(command.records()[-1]["groups"], seen, strict=True)
        ),
        "steps of both groups",
    )
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.finish()
    assert code == 130, err
    assert restarted() == ["0/learner", "1/learner"]
    weights = weights_of_groups(command)
    assert differences(*weights[:2]) == differences(*weights[2:]) == []
    assert [figures["group"] for figures in command.summary()["groups"]] == [0, 1]
