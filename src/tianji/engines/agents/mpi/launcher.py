"""What mpirun, mpiexec or srun tell a process that they start: environment variables.

It loads nothing, so that a command can ask before it knows its engine.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from tianji.config.machine import Machine
from tianji.errors import UsageError

RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
"""Variables with the rank: Open MPI sets the first, srun --mpi=pmix the second, MPICH and srun
--mpi=pmi2 the third."""


def launched_rank(environ: Mapping[str, str]) -> int | None:
    """Return the MPI rank of this process; None where it was not started as one of a job."""
    return next((int(environ[name]) for name in RANKS if environ.get(name, "").isdigit()), None)


def join_job(engine: str | None) -> None:
    """Begin as a rank of an MPI job, if this is one with the engine `mpi`. Ranks other than the
    first one serve it and do not return: it alone looks at the environment and decides. It begins
    first, so that the others end in good order where it refuses what was asked for."""
    if engine == "mpi" and launched_rank(os.environ) is not None:
        from tianji.engines.agents.mpi.hosts import begin

        begin()


class Slurm(NamedTuple):
    """The share of a Slurm job that this process belongs to."""

    num_tasks: int
    """Tasks of the step inside srun, or else of the job."""
    cpus: int | None
    """Cores of each task, or else of this node; None where Slurm does not say."""

    @staticmethod
    def read(environ: Mapping[str, str]) -> Slurm | None:
        """Return None outside of a Slurm job."""
        if "SLURM_JOB_ID" not in environ:
            return None
        cpus = _number(environ, "SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE")
        return Slurm(_number(environ, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS") or 1, cpus)

    def check(self, host_names: Sequence[str]) -> None:
        """Raise UsageError where the MPI job is not what the Slurm job asked for.

        host_names: by rank."""
        if len(host_names) == 1 and self.num_tasks > 1:
            raise UsageError(
                f"The Slurm job has {self.num_tasks} tasks, and this process is an MPI job of its "
                "own. Start it with `srun --mpi=pmix tianji ...`, with another of `srun "
                "--mpi=list` that your MPI library knows, or with mpirun."
            )
        name, count = Counter(host_names).most_common(1)[0]
        if count > 1:
            raise UsageError(
                f"Host {name} has {count} tasks. A task is a whole host here: ask for "
                "--ntasks-per-node=1, and for its cores with --cpus-per-task."
            )

    def limit(self, machine: Machine) -> Machine:
        """Return the part of a machine that the task may use, where Slurm does not bind tasks."""
        if self.cpus is None or self.cpus >= len(machine.cores):
            return machine
        cores = machine.cores[: self.cpus]
        nodes = (tuple(core for core in node if core in cores) for node in machine.nodes)
        return replace(
            machine,
            cores=cores,
            is_shared=True,  # which cores are others' is not known
            nodes=tuple(node for node in nodes if node),
            siblings=tuple(group for group in machine.siblings if set(group) <= set(cores)),
        )


def _number(environ: Mapping[str, str], *names: str) -> int | None:
    return next((int(environ[name]) for name in names if environ.get(name, "").isdigit()), None)
