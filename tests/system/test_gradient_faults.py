"""Actors that die or hang while gradients are gathered: who goes on, who waits, who says so."""

import json
import signal

import pytest

from tests.system.commands import Command

SHORT = [
    "--num-actors", "3", "--num-envs", "3", "--unroll-length", "4",
    "--target-return", "none", "--max-env-steps", "100000000", "--observe.period-s", "0.05",
    "--no-tensorboard", "--checkpoint.period-s", "1000", "--run", "run", "--env",
    "tianji.envs.worlds:Counting", "--env-kwargs.length", "1000000", "--times.law", "equal",
    "--times.unit-s", "0.02",
]  # fmt: skip
FEW = [*SHORT, "--baseline", "none"]
ABSENT = ["--absent-after-s", "0.5"]


def train(folder, algorithm, *words, few=FEW):
    """A run in which all actors have delivered."""
    command = Command(folder, "train", algorithm, *few, *words)
    command.wait_for(lambda: command.records() and min(counts(command)) > 0, "gradients of all")
    return command


def gathered(command):
    """What the run told of its rounds last."""
    return command.records()[-1]["gather"]


def counts(command):
    return gathered(command)["counts"]


def goes_on(command, versions=10):
    command.wait_for_version(command.version() + versions)


def others_go_on(command, absent=1):
    """The others have all delivered again, in new rounds; returns what each had and has made."""
    before = counts(command)
    goes_on(command)
    command.wait_for(
        lambda: all(
            now > then
            for actor, (now, then) in enumerate(zip(counts(command), before, strict=True))
            if actor != absent
        ),
        "gradients of the others",
    )
    return before, counts(command)


def end(command):
    """Its last words; nothing may be left."""
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.finish()
    assert code == 130, err
    return err


@pytest.mark.slow
def test_rennala_goes_on_without_an_actor_that_hangs_or_is_killed_and_with_it_again(tmp_path):
    command = train(tmp_path, "rennala-nigt", "--m", "6")
    hung = command.workers()["actor-1"]
    hung.suspend()
    goes_on(command)
    before, after = others_go_on(command)
    assert after[1] == before[1]
    hung.resume()
    command.wait_for(lambda: counts(command)[1] > after[1], "gradients of the one that hung")
    a_killed_actor_is_replaced_and_delivers_again(command)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["sync-nigt", "afedpg"])
def test_a_killed_actor_is_replaced_and_delivers_again(tmp_path, algorithm):
    a_killed_actor_is_replaced_and_delivers_again(train(tmp_path, algorithm))


@pytest.mark.parametrize(
    ("preset", "words"),
    [
        ("cartpole-gorila", ["--warmup-steps", "60", "--num-actors", "2", "--num-envs", "2"]),
        pytest.param("cartpole-a3c", [], marks=pytest.mark.slow),
    ],
)
def test_a_killed_actor_whose_episodes_went_on_is_replaced_and_delivers_again(
    tmp_path, preset, words
):
    """That of Gorila fills its memory again first."""
    a_killed_actor_is_replaced_and_delivers_again(train(tmp_path, preset, *words, few=SHORT))


def a_killed_actor_is_replaced_and_delivers_again(command):
    before = command.workers()["actor-1"]
    made = counts(command)[1]
    before.kill()
    command.wait_for(lambda: counts(command)[1] > made + 5, "gradients of the one that replaced it")
    assert command.workers()["actor-1"].pid != before.pid
    goes_on(command)
    assert "actor-1: killed by SIGKILL. Restart 1 of 5." in end(command)


MORTAL = """
from tianji.envs.worlds import Flaky


class Mortal(Flaky):
    steps_in_all = 0

    def begin(self, seeded):
        super().begin(seeded)
        self.total = self.steps_in_all

    def act(self, action):
        self.steps_in_all += 1
        return super().act(action)
"""


def test_the_sum_of_a_killed_actor_is_not_lost_and_rennala_goes_on_without_it(tmp_path):
    """It dies in its sixth gradient; the five before are among those that close the round. It is
    given up at its first death: nobody takes its place."""
    (tmp_path / "mortal.py").write_text(MORTAL)
    words = [
        "--env", "mortal:Mortal", "--env-kwargs.how", "kill", "--env-kwargs.at-step", "22",
        "--env-kwargs.marker", str(tmp_path / "marker"), "--supervise.max-restarts", "0",
        "--num-actors", "2", "--num-envs", "2",
    ]  # fmt: skip
    command = Command(tmp_path, "train", "rennala-nigt", *FEW, "--m", "40", *words)
    command.wait_for_version(1)
    first = next(record for record in command.records() if record["version"] == 1)
    assert sum(first["gather"]["counts"]) >= 40
    assert 5 in first["gather"]["counts"]
    goes_on(command, versions=2)
    assert len(command.workers()) == 2, "the learner and the other actor"
    assert "killed by SIGKILL. It was given up" in end(command)


def test_malenia_names_who_it_waits_for_and_ends_when_that_one_is_given_up(tmp_path):
    words = ["--supervise.max-restarts", "0", "--num-actors", "2", "--num-envs", "2", "--json"]
    command = train(tmp_path, "malenia-nigt", *words)
    who_is_waited_for_is_named(command)
    command.workers()["actor-1"].kill()
    code, out, _ = command.finish()
    assert code == 1
    assert "actor-1 was given up" in json.loads(out)["first_cause"]
    assert "absent_after_s" in json.loads(out)["first_cause"]


@pytest.mark.slow
def test_the_synchronous_method_names_who_it_waits_for(tmp_path):
    command = train(tmp_path, "sync-nigt")
    who_is_waited_for_is_named(command)
    end(command)


def who_is_waited_for_is_named(command):
    hung = command.workers()["actor-1"]
    hung.suspend()
    command.wait_for(lambda: waits_for(command, 1), "note that names it")
    command.wait_for(lambda: gathered(command)["waiting_for"] == [1], "record that names it alone")
    stands_at = command.version()
    hung.resume()
    command.wait_for_version(stands_at + 5)


def waits_for(command, actor):
    return any(f"actor-{actor}" in event.get("text", "") for event in command.events())


@pytest.mark.slow
@pytest.mark.parametrize(
    "algorithm", ["malenia-nigt", pytest.param("sync-nigt", marks=pytest.mark.slow)]
)
def test_if_told_to_they_go_on_without_one_that_hangs_and_with_it_again(tmp_path, algorithm):
    command = train(tmp_path, algorithm, *ABSENT, "--num-actors", "2", "--num-envs", "2")
    hung = command.workers()["actor-1"]
    hung.suspend()
    goes_on(command)
    before, after = others_go_on(command)
    assert after[1] == before[1]
    command.wait_for(lambda: gathered(command)["absent"] == [1], "record that names it alone")
    hung.resume()
    command.wait_for(lambda: counts(command)[1] > after[1] + 3, "gradients of the one that hung")
    command.wait_for(lambda: gathered(command)["absent"] == [], "all of them")
    err = end(command)
    assert "actor-1 has delivered nothing for 0.5 s: the run goes on without it" in err
    assert "actor-1 is back" in err
