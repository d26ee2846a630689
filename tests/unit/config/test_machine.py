"""What the machine lets us use, read from control groups that are files of ours."""

import os

import pytest

from tianji.config import machine
from tianji.config.machine import (
    Machine,
    cpu_quota,
    hyper_threads,
    memory_available_bytes,
    numa_nodes,
    read_machine,
)

MIB = 1 << 20


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "50000\n"}, 4.0),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu.max": "nonsense\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "100000\n"}, None),
        ({}, None),
    ],
    ids=["v2", "v2 without a limit", "v1", "v1 without a limit", "unreadable", "half", "no group"],
)
def test_the_quota_of_the_group_in_cores(tmp_path, files, quota):
    assert cpu_quota(write(tmp_path, files)) == quota


def test_the_newer_kind_of_group_is_asked_first(tmp_path):
    files = {
        "cpu.max": "100000 100000\n",
        "cpu/cpu.cfs_quota_us": "400000\n",
        "cpu/cpu.cfs_period_us": "100000\n",
    }
    assert cpu_quota(write(tmp_path, files)) == 1.0


V2 = ("memory.max", "memory.current", "memory.stat")
V1 = ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat")


@pytest.mark.parametrize("names", [V2, V1], ids=["v2", "v1"])
def test_the_memory_left_to_the_group_is_its_limit_less_what_it_uses(tmp_path, names):
    limit, used, _ = names
    write(tmp_path, {limit: f"{64 * MIB}\n", used: f"{24 * MIB}\n"})
    assert memory_available_bytes(tmp_path) == 40 * MIB


@pytest.mark.parametrize(
    "files",
    [
        {"memory.max": "max\n", "memory.current": "1000\n"},
        {"memory.max": f"{1 << 60}\n", "memory.current": "1000\n"},
        {"memory.max": f"{MIB}\n"},
        {},
    ],
    ids=["no limit", "a limit beyond the machine", "half", "no group"],
)
def test_without_a_limit_that_matters_it_is_what_the_machine_has_free(tmp_path, files):
    write(tmp_path, files)
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 64 * MIB < memory_available_bytes(tmp_path) <= physical


@pytest.mark.parametrize("names", [V2, V1], ids=["v2", "v1"])
def test_the_cache_that_the_kernel_gives_back_on_demand_counts_as_free(tmp_path, names):
    limit, used, stat = names
    files = {
        limit: f"{64 * MIB}\n",
        used: f"{60 * MIB}\n",
        stat: f"anon {10 * MIB}\nfile {50 * MIB}\ninactive_file {45 * MIB}\n",
    }
    assert memory_available_bytes(write(tmp_path, files)) == 49 * MIB


@pytest.mark.parametrize(
    ("mask", "quota", "cores"),
    [
        ({3, 1, 2}, None, (1, 2, 3)),
        ({0, 1, 2, 3}, 2.0, (0, 1)),
        ({0, 1, 2, 3}, 2.9, (0, 1)),
        ({4, 5}, 0.5, (4,)),
        ({4, 5}, 16.0, (4, 5)),
    ],
)
def test_the_cores_are_those_of_the_mask_cut_to_the_quota(monkeypatch, mask, quota, cores):
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _pid: mask)
    monkeypatch.setattr(machine, "cpu_quota", lambda: quota)
    monkeypatch.setattr(machine, "memory_available_bytes", lambda: 7)
    monkeypatch.setattr(machine, "numa_nodes", lambda cores: (tuple(cores),))
    monkeypatch.setattr(machine, "hyper_threads", lambda cores: ())
    is_shared = len(cores) < len(mask)
    assert read_machine() == Machine(cores, 7, is_shared, nodes=(cores,), siblings=())


NODES = {"node/node0/cpulist": "0-3\n", "node/node1/cpulist": "4,6-7\n"}


@pytest.mark.parametrize(
    ("files", "cores", "nodes"),
    [
        (NODES, (0, 1, 2, 3, 4, 6, 7), ((0, 1, 2, 3), (4, 6, 7))),
        (NODES, (1, 7), ((1,), (7,))),
        (NODES, (6, 7), ((6, 7),)),
        (NODES, (0, 5), ((0, 5),)),
        ({"node/node0/cpulist": "nonsense"}, (0, 1), ((0, 1),)),
        ({**NODES, "node/node2/cpulist": "\n"}, (0, 4), ((0,), (4,))),
        ({"node/node10/cpulist": "0", "node/node9/cpulist": "1"}, (0, 1), ((1,), (0,))),
        ({}, (2, 3), ((2, 3),)),
    ],
    ids=[
        "all",
        "some",
        "one node",
        "a core of none",
        "unreadable",
        "no cores",
        "order",
        "no nodes",
    ],
)
def test_cores_lie_in_the_nodes_that_the_kernel_names(tmp_path, files, cores, nodes):
    assert numa_nodes(cores, write(tmp_path, files)) == nodes


@pytest.mark.parametrize(
    ("cores", "groups"), [((0, 1, 2, 3), ((0, 2), (1, 3))), ((0, 1, 3), ((1, 3),)), ((0, 1), ())]
)
def test_hyper_threads_of_one_core_are_grouped_where_both_are_usable(tmp_path, cores, groups):
    lists = {f"cpu/cpu{c}/topology/thread_siblings_list": f"{c % 2},{c % 2 + 2}" for c in range(4)}
    assert hyper_threads(cores, write(tmp_path, lists)) == groups


def test_without_a_word_of_the_kernel_no_core_has_hyper_threads(tmp_path):
    assert hyper_threads((0, 1), tmp_path) == ()


def test_a_limit_of_the_group_that_this_process_is_in_holds(tmp_path):
    membership = tmp_path / "membership"
    membership.write_text("4:memory:/outer/inner\n0::/slice/job\n")
    write(tmp_path, {"slice/job/cpu.max": "max 100000", "slice/cpu.max": "150000 100000"})
    assert cpu_quota(tmp_path, membership) == 1.5
    version_2 = {"slice/job/memory.max": str(50 * MIB), "slice/job/memory.current": "0"}
    assert memory_available_bytes(write(tmp_path, version_2), membership) == 50 * MIB
    version_1 = {
        "memory/outer/memory.limit_in_bytes": str(30 * MIB),
        "memory/outer/memory.usage_in_bytes": str(20 * MIB),
    }
    assert memory_available_bytes(write(tmp_path, version_1), membership) == 10 * MIB


def test_more_than_the_group_may_have_is_none_left(tmp_path):
    files = {"memory.max": str(MIB), "memory.current": str(2 * MIB)}
    assert memory_available_bytes(write(tmp_path, files), tmp_path / "none") == 0
