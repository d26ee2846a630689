"""Runs under mpirun: all ranks end together, whichever of them ends first."""

import signal

import psutil
import pytest

from tests.system.commands import FOREVER, SMALL, Command
from tests.system.mpi_jobs import MPIRUN, here
from tests.system.runs import differences
from tests.system.test_joined_groups import JOINED, weights_of_groups

pytest.importorskip("mpi4py", reason="needs mpi4py")
pytestmark = pytest.mark.skipif(MPIRUN is None, reason="needs mpirun")
ON_MPI = ["--engine", "mpi", "--env", "CartPole-v1"]
ENDS_S = 15


def ranks_of(command):
    found = psutil.Process(command.process.pid).children(recursive=True)
    return [rank for rank in found if rank.cmdline()[1:3] == ["-m", "tianji"]]


def again_from(command):
    """The steps that the run had counted at the last record."""
    return command.records()[-1]["env_steps"]


def test_a_run_ends_at_its_limit_on_all_ranks(tmp_path):
    words = [*SMALL, *ON_MPI, "--max-env-steps", "4000"]
    command = Command(tmp_path, "train", *words, prefix=here(2))
    code, _, err = command.finish()
    assert code == 0, err
    summary = command.summary()
    assert (summary["engine"], summary["stopped_because"]) == ("mpi", "max_env_steps")


def test_learners_on_two_ranks_add_up_their_gradients(tmp_path):
    words = [*SMALL, *JOINED, "--engine", "mpi", "--max-env-steps", "4000"]
    command = Command(tmp_path, "train", *words, prefix=here(2))
    code, _, err = command.finish()
    assert code == 0, err
    one, other = weights_of_groups(command)
    assert one and differences(one, other) == []
    assert [host["groups"] for host in command.summary()["hosts"]] == [[0], [1]]


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_a_rank_that_dies_ends_the_job_and_resume_goes_on(rank, tmp_path):
    command = Command(tmp_path, "train", *SMALL, *FOREVER, *ON_MPI, prefix=here(2))
    folder = command.run_dir / "checkpoints"
    command.wait_for(lambda: any(folder.glob("v*[1-9]")), "checkpoint")
    ranks = sorted(ranks_of(command), key=lambda process: len(process.children()))
    victim = ranks[1 - rank]  # the head has started the workers
    victim.send_signal(signal.SIGKILL)
    code, _, _ = command.finish(after_s=ENDS_S)
    assert code != 0
    done = again_from(command) + 4_000
    more = ["--max-env-steps", str(done)]
    again = Command(tmp_path, "resume", "run", *more, prefix=here(2))
    code, _, err = again.finish()
    assert code == 0, err
    assert again.summary()["env_steps"] >= done


@pytest.mark.slow
def test_an_algorithm_that_gathers_gradients_runs(tmp_path):
    words = ["--engine", "mpi", "--max-env-steps", "4000", "--target-return", "none"]
    command = Command(tmp_path, "train", "rennala-nigt", "--run", "run", *words, prefix=here(2))
    code, _, err = command.finish()
    assert code == 0, err
    summary = command.summary()
    assert summary["stopped_because"] == "max_env_steps"
    assert sum(summary["gather"]["counts"]) >= summary["version"] > 0


def test_a_setting_that_is_refused_ends_all_ranks(tmp_path):
    command = Command(tmp_path, "train", *SMALL, *ON_MPI, "--env", "Nowhere-v1", prefix=here(2))
    code, _, err = command.finish()
    assert code != 0
    assert "Nowhere-v1" in err
