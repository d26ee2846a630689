"""What happens when something breaks: each time what a person would want, and nothing is left."""

import json
import os
import shutil
import signal
import subprocess

import pytest

from tests.system.commands import (
    FOREVER,
    SMALL,
    Command,
    assert_nothing_is_left,
    tianji_processes,
)
from tianji.checkpoint.load import latest, read_checkpoint

COUNTING = ["--env", "tianji.envs.worlds:Counting"]


def flaky(how, tmp_path, *more):
    """One actor: with several, the first to come there would fail, and others end the run."""
    return [
        "--env", "tianji.envs.worlds:Flaky", "--env-kwargs.how", how, "--env-kwargs.at-step", "50",
        "--env-kwargs.marker", str(tmp_path / "marker"), "--num-actors", "1", *more,
    ]  # fmt: skip


def test_an_environment_that_raises_is_replaced_and_costs_no_restart(tmp_path):
    words = flaky("raise", tmp_path, "--max-env-steps", "4000", "--json")
    code, out, err = Command(tmp_path, "train", *SMALL, *words).finish()
    summary = json.loads(out)
    assert code == 0
    assert summary["stopped_because"] == "max_env_steps"
    assert (summary["restarts"], summary["env_failures"]) == (0, 1)
    assert "failed: RuntimeError: this world fails in step 50" in err
    assert "in act" in err, "the traceback leads to the line that failed"


def test_an_environment_that_always_raises_ends_the_run_with_its_first_cause(tmp_path):
    words = ["--env", "tianji.envs.worlds:Flaky", "--env-kwargs.at-step", "5",
             "--supervise.backoff-s", "0.01", "--num-actors", "1"]  # fmt: skip
    command = Command(tmp_path, "train", *SMALL, *words, *FOREVER, "--json")
    code, out, err = command.finish()
    assert code == 1
    cause = json.loads(out)["first_cause"]
    assert cause.startswith("actor-0: EnvironmentFailed")
    assert "RuntimeError: this world fails in step 5" in cause
    assert "supervise.max_restarts" in cause
    first_error = next(line for line in err.splitlines() if "rror" in line)
    assert "actor-0" in first_error


def test_a_killed_actor_is_replaced_and_training_goes_on(tmp_path):
    command = Command(
        tmp_path, "train", *SMALL, *COUNTING, *FOREVER, "--num-actors", "2", "--max-lag", "2"
    )
    command.wait_for_version(5)
    before = command.workers()
    before["actor-1"].kill()
    command.wait_for(
        lambda: command.workers().get("actor-1", before["actor-1"]).pid != before["actor-1"].pid,
        "replacement",
    )
    command.wait_for_version(command.version() + 50)
    after = command.workers()
    assert after["learner"].pid == before["learner"].pid
    assert after["actor-0"].pid == before["actor-0"].pid
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.finish()
    assert code == 130
    assert "actor-1: killed by SIGKILL. Restart 1 of 5." in err
    assert command.summary()["restarts"] == 1
    assert command.summary()["lag_versions"]["max"] <= 2


def test_an_actor_that_stops_answering_is_replaced_and_shows_where_it_hung(tmp_path):
    words = flaky("hang", tmp_path, "--supervise.heartbeat-timeout-s", "3")
    command = Command(tmp_path, "train", *SMALL, *words, "--max-env-steps", "2000", "--json")
    code, out, err = command.finish()
    assert code == 0
    assert json.loads(out)["restarts"] >= 1  # one kept from its core for as long is replaced too
    assert "no sign of life" in err
    assert "worlds.py" in err, "the stack dump of the hanging step"


def test_a_killed_learner_goes_on_from_its_checkpoint_and_the_actors_stay(tmp_path):
    command = Command(tmp_path, "train", *SMALL, *COUNTING, *FOREVER)
    command.wait_for(lambda: latest_version(command) > 0, "checkpoint")
    before = command.workers()
    before["learner"].kill()
    command.wait_for(
        lambda: command.workers().get("learner", before["learner"]).pid != before["learner"].pid,
        "replacement",
    )
    command.wait_for_version(command.version() + 50)
    assert command.workers()["actor-0"].pid == before["actor-0"].pid
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.finish()
    assert code == 130
    assert "what was learned after that checkpoint is lost" in err
    for key in ("version", "env_steps", "updates", "wall_s"):
        values = [record[key] for record in command.records()]
        assert values == sorted(values), f"{key} never falls"


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
    command.wait_for_version(command.version() + 20)
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.finish()
    assert code == 130
    assert still_there in err


def test_a_learner_that_stops_answering_is_replaced(tmp_path):
    command = Command(
        tmp_path, "train", *SMALL, *COUNTING, *FOREVER, "--supervise.heartbeat-timeout-s", "3"
    )
    command.wait_for(lambda: latest_version(command) > 0, "checkpoint")
    before = command.workers()["learner"]
    before.suspend()
    command.wait_for(
        lambda: command.workers().get("learner", before).pid != before.pid, "replacement"
    )
    command.wait_for_version(command.version() + 20)
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.finish()
    assert code == 130
    assert "learner: no sign of life" in err


def test_a_killed_evaluator_is_replaced_and_training_does_not_notice(tmp_path):
    words = ["--evaluate.period-s", "0.2", "--evaluate.episodes", "2"]
    command = Command(tmp_path, "train", *SMALL, *COUNTING, *FOREVER, *words)
    evaluated = lambda: [e for e in command.events() if e["kind"] == "evaluation"]  # noqa: E731
    command.wait_for_version(3)
    command.wait_for(evaluated, "evaluation")
    before = command.workers()
    before["evaluator"].kill()
    count = len(evaluated())
    command.wait_for(lambda: len(evaluated()) > count, "evaluation after the kill")
    assert command.workers()["learner"].pid == before["learner"].pid
    command.process.send_signal(signal.SIGINT)
    code, _, _ = command.finish()
    assert code == 130


def test_ctrl_c_during_start_up_ends_the_run_cleanly(tmp_path):
    command = Command(tmp_path, "train", *SMALL, *COUNTING, *FOREVER)
    command.wait_for(command.workers, "workers")
    command.process.send_signal(signal.SIGINT)
    code, _, _ = command.finish()
    assert code == 130
    assert command.summary()["stopped_because"] == "interrupted"


def test_sigterm_to_every_process_still_saves_and_sums_up(tmp_path):
    """As a service manager or a batch system does it."""
    command = Command(tmp_path, "train", *SMALL, *COUNTING, *FOREVER)
    command.wait_for_version(3)
    for process in (*command.workers().values(), command.process):
        process.send_signal(signal.SIGTERM)
    code, _, _ = command.finish()
    assert code == 130
    assert command.summary()["version"] == latest_version(command)


def latest_version(command):
    folder = command.run_dir / "checkpoints"
    return max((int(p.name[1:]) for p in folder.glob("v*")), default=-1) if folder.exists() else -1


def test_ctrl_c_finishes_saves_and_sums_up(tmp_path):
    command = Command(tmp_path, "train", *SMALL, *COUNTING, *FOREVER, "--json")
    command.wait_for_version(3)
    command.process.send_signal(signal.SIGINT)
    code, out, err = command.finish()
    summary = json.loads(out)
    assert code == 130
    assert summary["stopped_because"] == "interrupted"
    assert summary["version"] == latest_version(command), "what was learned is saved"
    assert "tianji resume run" in err


def test_ctrl_c_twice_stops_at_once(tmp_path):
    """The second comes while the learner is frozen and cannot finish anything."""
    command = Command(tmp_path, "train", *SMALL, *COUNTING, *FOREVER)
    command.wait_for_version(3)
    command.workers()["learner"].suspend()
    command.process.send_signal(signal.SIGINT)
    command.wait_for(lambda: any("Ctrl-C" in e["text"] for e in command.events()), "first answer")
    command.process.send_signal(signal.SIGINT)
    code, _, _ = command.finish()
    assert code == 130
    assert command.summary()["stopped_because"] == "interrupted"


def test_a_killed_parent_takes_everything_with_it(tmp_path):
    command = Command(tmp_path, "train", *SMALL, *COUNTING, *FOREVER, "--num-actors", "2")
    command.wait_for_version(3)
    assert len(tianji_processes(tmp_path)) == 3
    command.process.kill()
    command.process.wait()
    assert_nothing_is_left(tmp_path)
    for path in (command.run_dir / "checkpoints").glob("v*"):
        read_checkpoint(path)


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


def test_a_full_disk_costs_checkpoints_not_the_run(tiny_disk):
    command = Command(tiny_disk, "train", *SMALL, *COUNTING, *FOREVER)
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


def test_a_small_dev_shm_does_not_matter(tmp_path):
    """Shared memory is memfds, which no mount limits."""
    if os.getuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs a mount namespace of its own")
    shell = 'mount -t tmpfs -o size=4k tmpfs /dev/shm && exec "$@"'
    prefix = ("unshare", "-m", "sh", "-c", shell, "sh")
    words = [*SMALL, *COUNTING, "--max-env-steps", "1000", "--json"]
    code, out, err = Command(tmp_path, "train", *words, prefix=prefix).finish()
    assert code == 0, err
    assert json.loads(out)["stopped_because"] == "max_env_steps"


def test_a_run_that_does_not_fit_is_refused_with_the_arithmetic(tmp_path):
    words = ["cartpole-dqn", "--replay-size", "100000000000", "--json"]
    code, out, _ = Command(tmp_path, "train", *words).finish()
    assert code == 2
    assert "replay 3,0" in json.loads(out)["error"], "the part that is too large"
    assert not (tmp_path / "runs").exists(), "nothing was started"


def test_a_loss_that_is_not_a_number_stops_the_run_and_keeps_the_last_sound_policy(tmp_path):
    words = ["--env", "tianji.envs.worlds:NaNRewards", "--env-kwargs.at-step", "300", *FOREVER]
    command = Command(tmp_path, "train", *SMALL, *words, "--json")
    code, out, err = command.finish()
    assert code == 1
    assert json.loads(out)["first_cause"].startswith("learner: TrainingDiverged")
    assert "rewards" in err
    snapshot = read_checkpoint(latest(command.run_dir).path)
    assert all(bool(weight.isfinite().all()) for weight in snapshot.weights.values())
