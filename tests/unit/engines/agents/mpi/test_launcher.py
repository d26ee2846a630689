import pytest

import tianji
from tianji.cli.verbs import train
from tianji.config.machine import Machine
from tianji.engines.agents.mpi.launcher import Slurm, join_job, launched_rank
from tianji.errors import UsageError

JOB = {"SLURM_JOB_ID": "17", "SLURM_NTASKS": "2"}


@pytest.mark.parametrize("name", ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"])
def test_the_rank_is_told_by_every_launcher(name):
    assert launched_rank({name: "3"}) == 3


def test_a_process_of_its_own_has_no_rank():
    assert launched_rank({}) is None
    assert launched_rank({"PMI_RANK": ""}) is None


class Served(Exception):
    pass


@pytest.fixture
def serving(monkeypatch):
    def begin():
        raise Served

    monkeypatch.setattr("tianji.engines.agents.mpi.hosts.begin", begin)
    monkeypatch.setenv("PMI_RANK", "1")


@pytest.mark.parametrize("preset", [None, "written.yaml"])
def test_a_rank_that_is_not_the_first_serves_before_it_looks_at_the_environment(
    serving, preset, tmp_path, monkeypatch
):
    """Its host may lack the environment, and the head may choose otherwise."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "written.yaml").write_text("engine: mpi\n")
    engine = {} if preset else {"engine": "mpi"}
    with pytest.raises(Served):
        tianji.train(preset, env="nowhere:make", **engine)
    words = [preset or "--engine=mpi", "--env", "nowhere:make"]
    with pytest.raises(Served):
        train.train(*words)


def test_the_first_rank_begins_before_it_may_refuse_anything(serving, monkeypatch):
    """The others, which wait for it, then end with it."""
    monkeypatch.setenv("PMI_RANK", "0")
    with pytest.raises(Served):
        train.train("--engine=mpi", "--env", "nowhere:make")


def test_a_run_with_another_engine_or_outside_of_a_job_joins_nothing(serving, monkeypatch):
    join_job("local")
    monkeypatch.delenv("PMI_RANK")
    join_job("mpi")


def test_outside_of_a_job_there_is_no_slurm():
    assert Slurm.read({"SLURM_CONF": "/etc/slurm.conf"}) is None


def test_a_step_counts_before_its_job():
    assert Slurm.read(JOB) == Slurm(num_tasks=2, cpus=None)
    step = JOB | {"SLURM_STEP_NUM_TASKS": "4", "SLURM_CPUS_ON_NODE": "8"}
    assert Slurm.read(step) == Slurm(num_tasks=4, cpus=8)
    assert Slurm.read(step | {"SLURM_CPUS_PER_TASK": "6"}) == Slurm(num_tasks=4, cpus=6)


def test_a_process_that_is_alone_in_a_job_of_several_tasks_is_refused():
    with pytest.raises(UsageError, match=r"has 2 tasks, and this process is.*srun --mpi=pmix"):
        Slurm(2, None).check(["a"])


def test_two_tasks_on_a_node_are_refused():
    Slurm(2, None).check(["a", "b"])
    with pytest.raises(UsageError, match=r"Host b has 2 tasks.*--ntasks-per-node=1"):
        Slurm(3, None).check(["a", "b", "b"])


def test_a_task_that_is_not_bound_is_planned_on_its_share():
    machine = Machine(tuple(range(8)), 1 << 30, nodes=((0, 1, 2, 3), (4, 5, 6, 7)))
    assert Slurm(1, None).limit(machine) == machine
    assert Slurm(1, 8).limit(machine) == machine
    part = Slurm(1, 3).limit(machine)
    assert (part.cores, part.is_shared, part.nodes) == ((0, 1, 2), True, ((0, 1, 2),))
