"""The Slurm script, with stand-ins for srun and scontrol: a warning saves, and the job goes on."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.commands import DEADLINE_S, FOREVER, SMALL, Command
from tests.system.mpi_jobs import MPIRUN, here

pytest.importorskip("mpi4py", reason="needs mpi4py")
pytestmark = pytest.mark.skipif(MPIRUN is None, reason="needs mpirun")
SCRIPT = Path(__file__).parents[2] / "examples/slurm/tianji.sbatch"
JOB = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "1", "SLURM_CPUS_PER_TASK": "2"}
WORDS = [*SMALL[: SMALL.index("--run")], *SMALL[SMALL.index("--run") + 2 :], "--env", "CartPole-v1"]


def put(folder, name, text):
    (folder / name).write_text(f"#!/bin/bash\n{text}\n")
    (folder / name).chmod(0o755)


class BatchJob(Command):
    """A start of the batch script; Slurm's warning goes to its shell alone."""

    def __init__(self, folder, *words, restarts=0):
        tools = folder / "tools"
        tools.mkdir(exist_ok=True)
        put(tools, "tianji", f'exec {sys.executable} -m tianji "$@"')
        options = 'while [ "${1#-}" != "$1" ]; do shift; done'
        put(tools, "srun", f'{options}\nexec {" ".join(here(1))} "$@"')
        put(tools, "scontrol", f'echo "$@" >> {folder}/scontrol.log')
        environ = JOB | {"PATH": f"{tools}:{os.environ['PATH']}"}
        environ |= {"SLURM_RESTART_COUNT": str(restarts)} if restarts else {}
        super().__init__(folder, *words, program=("bash", str(SCRIPT)), environ=environ)
        self.run_dir = folder / "runs" / "slurm-7"

    def queued_again(self):
        path = self.folder / "scontrol.log"
        return path.read_text().splitlines() if path.exists() else []


def test_a_warning_saves_and_the_next_job_goes_on(tmp_path):
    job = BatchJob(tmp_path, *WORDS, *FOREVER)
    folder = job.run_dir / "checkpoints"
    job.wait_for(lambda: any(folder.glob("v*[1-9]")), "checkpoint")
    job.process.send_signal(signal.SIGUSR1)
    code, out, err = job.finish()
    assert (code, job.queued_again()) == (130, ["requeue 7"]), out + err
    done = job.summary()["env_steps"]
    again = BatchJob(tmp_path, *WORDS, *FOREVER, restarts=1)
    again.wait_for(lambda: again.records()[-1]["env_steps"] > done, "more steps")
    again.process.send_signal(signal.SIGUSR1)
    code, out, err = again.finish()
    assert (code, again.queued_again()) == (130, ["requeue 7"] * 2), out + err
    restored = [event for event in again.events() if event["kind"] == "restored"]
    assert len(restored) == 1
    assert again.summary()["env_steps"] > done


@pytest.mark.slow
def test_a_run_that_ends_by_itself_is_not_queued_again(tmp_path):
    job = BatchJob(tmp_path, *WORDS, "--max-env-steps", "2000", "--target-return", "none")
    code, out, err = job.finish()
    assert (code, job.queued_again()) == (0, []), out + err


def test_the_script_is_sound_and_asks_for_a_warning_of_its_shell():
    subprocess.run(["bash", "-n", str(SCRIPT)], check=True, timeout=DEADLINE_S)
    asked = [line for line in SCRIPT.read_text().splitlines() if line.startswith("#SBATCH")]
    assert {"#SBATCH --ntasks-per-node=1", "#SBATCH --signal=B:USR1@120", "#SBATCH --requeue"} <= {
        *asked
    }
