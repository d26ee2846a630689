"""What happens when something breaks: each time what a person would want, and nothing is left."""

import json
import os
import re
import shutil
import signal
import subprocess

import pytest

from tests.system.commands import FOREVER, SMALL, Command
from tianji.checkpoint.load import latest, read_checkpoint
from tianji.cli.main import main

ENDLESS = ["--env-kwargs.length", "1000000"]
"""No episode ends, so that no time is spent on a learning curve."""
COUNTING = ["--env", "tianji.envs.worlds:Counting", *ENDLESS]
WORLD = '''
import sys
import time
from pathlib import Path

from tianji.envs.worlds import Slow


class Told(Slow):
    """Fails or hangs when there is a file that tells its worker to."""

    def act(self, action):
        if is_told_to("raise"):
            raise RuntimeError("this world fails as it was told")
        if is_told_to("hang"):
            time.sleep(1e6)
        return super().act(action)


def is_told_to(what):
    order = Path(f"{sys.argv[-1]}.{what}")
    if order.exists():
        order.unlink()
        return True
    return False
'''
TOLD = ["--env", "told:Told", "--env-kwargs.seconds", "0.001"]


def train_told(folder, *words):
    """A run that goes on until it is ended, whose environments fail when they are told to."""
    (folder / "told.py").write_text(WORLD)
    return Command(folder, "train", *SMALL, *TOLD, *FOREVER, *words)


def goes_on(command, versions=20):
    command.wait_for_version(command.version() + versions)


def is_replaced(command, worker, process):
    command.wait_for(lambda: command.workers().get(worker, process).pid != process.pid, worker)


def event_texts(command, kind):
    return [event["text"] for event in command.events() if event["kind"] == kind]


def latest_version(command):
    folder = command.run_dir / "checkpoints"
    return max((int(p.name[1:]) for p in folder.glob("v*")), default=-1) if folder.exists() else -1


def test_a_run_outlives_the_failure_of_each_of_its_parts(tmp_path):
    command = train_told(
        tmp_path, "--num-actors", "2", "--max-lag", "2", "--json",
        "--evaluate.period-s", "0.2", "--evaluate.episodes", "2",
    )  # fmt: skip
    command.wait_for_version(5)
    an_environment_that_raises_is_replaced_and_costs_no_restart(command)
    a_killed_actor_is_replaced(command)
    a_killed_evaluator_is_replaced_and_training_does_not_notice(command)
    assert command.records()[-1]["lag_versions"]["max"] <= 2
    a_killed_learner_goes_on_from_its_checkpoint_and_the_actors_stay(command)
    err = ctrl_c_finishes_saves_and_sums_up(command, restarts=3)
    assert "failed: RuntimeError: this world fails as it was told" in err
    assert "in act" in err, "the traceback leads to the line that failed"
    assert "actor-1: killed by SIGKILL. Restart 1 of 5." in err
    assert "what was learned after that checkpoint is lost" in err
    for key in ("version", "env_steps", "updates", "wall_s"):
        values = [record[key] for record in command.records()]
        assert values == sorted(values), f"{key} never falls"


def an_environment_that_raises_is_replaced_and_costs_no_restart(command):
    before = command.workers()
    (command.folder / "actor-0.raise").touch()
    command.wait_for(lambda: command.records()[-1]["env_failures"] == 1, "failure")
    goes_on(command)
    assert command.workers() == before
    assert event_texts(command, "restart") == []


def a_killed_actor_is_replaced(command):
    before = command.workers()
    before["actor-1"].kill()
    is_replaced(command, "actor-1", before["actor-1"])
    goes_on(command)
    after = command.workers()
    for worker in before.keys() - {"actor-1"}:
        assert after[worker].pid == before[worker].pid


def a_killed_evaluator_is_replaced_and_training_does_not_notice(command):
    command.wait_for(lambda: event_texts(command, "evaluation"), "evaluation")
    before = command.workers()
    before["evaluator"].kill()
    is_replaced(command, "evaluator", before["evaluator"])
    count = len(event_texts(command, "evaluation"))
    command.wait_for(
        lambda: len(event_texts(command, "evaluation")) > count, "evaluation after the kill"
    )
    assert command.workers()["learner"].pid == before["learner"].pid


def a_killed_learner_goes_on_from_its_checkpoint_and_the_actors_stay(command):
    command.wait_for(lambda: latest_version(command) > 0, "checkpoint")
    before = command.workers()
    before["learner"].kill()
    is_replaced(command, "learner", before["learner"])
    goes_on(command, versions=50)
    assert command.workers()["actor-0"].pid == before["actor-0"].pid


def ctrl_c_finishes_saves_and_sums_up(command, restarts):
    command.process.send_signal(signal.SIGINT)
    code, out, err = command.finish()
    summary = json.loads(out)
    assert code == 130
    assert summary["stopped_because"] == "interrupted"
    assert (summary["restarts"], summary["env_failures"]) == (restarts, 1)
    assert summary["version"] == latest_version(command), "what was learned is saved"
    assert "tianji resume run" in err
    assert summary["critical_path"] is not None
    assert summary["waited_s"].keys() >= {"actor-0", "learner"}
    assert summary["explanation"][0][:30] in err
    return err


def test_workers_that_stop_answering_are_replaced(tmp_path):
    """At least once each: one that is kept from its core for as long is replaced too."""
    words = ["--num-actors", "1", "--supervise.heartbeat-timeout-s", "3", *ENDLESS]
    command = train_told(tmp_path, *words)
    command.wait_for(lambda: latest_version(command) > 0, "checkpoint")
    actor = command.workers()["actor-0"]
    (tmp_path / "actor-0.hang").touch()
    is_replaced(command, "actor-0", actor)
    goes_on(command)
    learner = command.workers()["learner"]
    learner.suspend()
    is_replaced(command, "learner", learner)
    goes_on(command)
    err = sigterm_to_every_process_still_saves_and_sums_up(command)
    assert "actor-0: no sign of life" in err
    assert re.search(r"It is in \w+\(\) of told\.py, line \d+\.", err)
    assert "most recent call first" not in err
    log = (command.run_dir / "events.jsonl").read_text()
    assert "most recent call first" in log and "told.py" in log, "the whole stack"
    assert "learner: no sign of life" in err


def sigterm_to_every_process_still_saves_and_sums_up(command):
    """As a service manager or a batch system does it."""
    for process in (*command.workers().values(), command.process):
        process.send_signal(signal.SIGTERM)
    code, _, err = command.finish()
    assert code == 130
    assert command.summary()["version"] == latest_version(command)
    return err


def test_a_killed_learner_finds_its_replay_store_again(tmp_path):
    words = [
        *COUNTING, *FOREVER, "--algorithm", "dqn", "--warmup-steps", "200", "--num-envs", "4",
        "--checkpoint.replay", "false", "--checkpoint.period-s", "0.2", "--plan.source", "rule",
        "--observe.period-s", "0.05", "--no-tensorboard", "--run", "run",
    ]  # fmt: skip
    command = Command(tmp_path, "train", *words)
    command.wait_for(lambda: latest_version(command) > 0, "checkpoint")
    command.workers()["learner"].kill()
    still_there = "The replay store is still in shared memory"
    command.wait_for(
        lambda: any(still_there in event["text"] for event in command.events()), "its store"
    )
    goes_on(command)
    assert still_there in ctrl_c_twice_stops_at_once(command)


def ctrl_c_twice_stops_at_once(command):
    """The second comes while the learner is frozen and cannot finish anything."""
    command.workers()["learner"].suspend()
    command.process.send_signal(signal.SIGINT)
    command.wait_for(lambda: any("Ctrl-C" in e["text"] for e in command.events()), "first answer")
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.finish()
    assert code == 130
    assert command.summary()["stopped_because"] == "interrupted"
    return err


def test_an_environment_that_always_raises_ends_the_run_with_its_first_cause(tmp_path):
    words = ["--env", "tianji.envs.worlds:Flaky", "--env-kwargs.at-step", "5", "--num-actors", "1",
             "--supervise.backoff-s", "0.01", "--supervise.max-restarts", "1"]  # fmt: skip
    command = Command(tmp_path, "train", *SMALL, *words, *FOREVER, "--json")
    code, out, err = command.finish()
    assert code == 1
    cause = json.loads(out)["first_cause"]
    assert cause.startswith("actor-0: EnvironmentFailed")
    assert "RuntimeError: this world fails in step 5" in cause
    assert "supervise.max_restarts" in cause
    assert "failed within the first steps" in " ".join(err.split()), "before the run"
    first_error = next(line for line in err.splitlines() if "EnvironmentFailed" in line)
    assert "actor-0" in first_error


def test_ctrl_c_during_start_up_ends_the_run_cleanly(tmp_path):
    command = Command(tmp_path, "train", *SMALL, *COUNTING, *FOREVER)
    command.wait_for(command.workers, "workers")
    command.process.send_signal(signal.SIGINT)
    code, _, _ = command.finish()
    assert code == 130
    assert command.summary()["stopped_because"] == "interrupted"


@pytest.fixture
def tiny_disk(tmp_path):
    """A folder that is full at 4 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=False)


def test_a_full_disk_costs_checkpoints_not_the_run_and_a_small_dev_shm_nothing(tiny_disk):
    """Shared memory is memfds, which no mount limits."""
    if shutil.which("unshare") is None:
        pytest.skip("needs a mount namespace of its own")
    shell = 'mount -t tmpfs -o size=4k tmpfs /dev/shm && exec "$@"'
    prefix = ("unshare", "-m", "sh", "-c", shell, "sh")
    command = Command(tiny_disk, "train", *SMALL, *COUNTING, *FOREVER, prefix=prefix)
    command.wait_for(lambda: latest_version(command) >= 0, "first checkpoint")
    command.wait_for(command.events, "first event")
    filler = tiny_disk / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(b"0" * 4096)
    command.wait_for(  # that event too may meet the full disk; then the next one tells
        lambda: any(e["kind"] == "checkpoint_failed" for e in command.events()),
        "word of the full disk",
    )
    kept = latest_version(command)
    filler.unlink()
    command.wait_for(lambda: latest_version(command) > kept, "checkpoint after space came back")
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.finish()
    assert code == 130
    assert "is full" in err and "Training continues" in err


def test_a_run_that_does_not_fit_is_refused_with_the_arithmetic(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "cartpole-dqn", "--replay-size", "100000000000", "--json"]) == 2
    error = json.loads(capfd.readouterr().out)["error"]
    assert "replay 3,0" in error, "the part that is too large"
    assert not (tmp_path / "runs").exists(), "nothing was started"


def test_a_loss_that_is_not_a_number_stops_the_run_and_keeps_the_last_sound_policy(tmp_path):
    words = ["--env", "tianji.envs.worlds:NaNRewards", "--env-kwargs.at-step", "300", *FOREVER]
    command = Command(tmp_path, "train", *SMALL, *words, "--json")
    code, out, err = command.finish()
    summary = json.loads(out)
    assert code == 1
    assert summary["first_cause"].startswith("learner: TrainingDiverged")
    assert summary["env_steps"] > 0 and summary["updates"] > 0, "what it had done before"
    assert "rewards" in err
    snapshot = read_checkpoint(latest(command.run_dir).path)
    assert all(bool(weight.isfinite().all()) for weight in snapshot.weights.values())
