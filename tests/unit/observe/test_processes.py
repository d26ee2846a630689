"""What the system says of processes."""

import os
import time

import pytest

from tianji.observe import processes as module
from tianji.observe.processes import ProcessTimes, ProcessUse, read_process

NOBODY = 2**22 + 1


def test_the_memory_of_a_process_is_that_of_its_pages_in_ram():
    status = open("/proc/self/status").read()  # noqa: SIM115
    told_kib = int(next(x for x in status.splitlines() if x.startswith("VmRSS")).split()[1])
    assert read_process(os.getpid()).resident_bytes == pytest.approx(told_kib * 1024, rel=0.2)


def test_processor_time_is_that_of_the_process():
    told_s = read_process(os.getpid()).core_ns / 1e9
    assert told_s == pytest.approx(time.process_time(), abs=0.1)


def test_a_process_that_is_gone_is_nothing():
    assert read_process(NOBODY) is None


def test_a_name_with_blanks_and_brackets_confuses_nobody(monkeypatch):
    numbers = " ".join(["R", *map(str, range(1, 50))])
    files = {"stat": f"7 (a) b ( c) {numbers}", "schedstat": "11 22 33"}
    monkeypatch.setattr(module, "_read", lambda path: files[path.split("/")[-1]].encode())
    use = read_process(7)
    assert use == ProcessUse(21 * module.PAGE_BYTES, (11 + 12) * module.TICK_NS, 22)


def test_a_kernel_that_does_not_count_waits_for_cores_counts_none(monkeypatch):
    real = module._read

    def read(path):
        if path.endswith("schedstat"):
            raise FileNotFoundError(path)
        return real(path)

    monkeypatch.setattr(module, "_read", read)
    assert read_process(os.getpid()).no_core_ns == 0


def test_times_go_on_in_the_process_that_takes_over(monkeypatch):
    uses = {}
    monkeypatch.setattr(module, "read_process", uses.get)
    times = ProcessTimes()
    uses[1] = ProcessUse(100, 5, 3)
    times.look({"actor-0": 1})
    uses[1] = ProcessUse(100, 8, 4)
    times.look({"actor-0": 1})
    assert (times.core_ns, times.no_core_ns) == ({"actor-0": 8}, {"actor-0": 4})
    uses.clear()
    times.look({"actor-0": 1})
    assert times.resident_bytes == {}
    uses[2] = ProcessUse(50, 2, 1)
    times.look({"actor-0": 2})
    assert (times.core_ns, times.no_core_ns) == ({"actor-0": 10}, {"actor-0": 5})
    assert times.resident_bytes == {"actor-0": 50}
