"""What the system says of processes."""

import os
import threading
import time

import pytest

from tianji.observe import processes as module
from tianji.observe.processes import (
    ProcessTimes,
    ProcessUse,
    Seat,
    ThreadUse,
    read_process,
    read_thread,
)

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


class Machine:
    """Processes with threads, whose times a test sets."""

    def __init__(self, monkeypatch, threads):
        """threads: of each process."""
        self.threads = threads
        self.core_ns = {}
        monkeypatch.setattr(module, "read_process", self.process)
        monkeypatch.setattr(module, "read_thread", self.thread)

    def process(self, pid):
        return ProcessUse(0, sum(self.core_ns.get(t, 0) for t in self.threads[pid]), 0)

    def thread(self, pid, thread):
        if thread not in self.threads[pid]:
            return None
        return ThreadUse(self.core_ns.get(thread, 0), self.core_ns.get(thread, 0) // 10)


def test_threads_of_an_emulator_count_for_the_actors_beside_a_learner(monkeypatch):
    main, learning, acting, *emulator = range(100, 120)
    machine = Machine(monkeypatch, {main: [main, learning, acting, *emulator]})
    seats = {
        "actor-0": Seat("actor", acting), "actor-1": Seat("actor", acting),
        "buffer": Seat("buffer", learning), "learner": Seat("learner", learning),
    }  # fmt: skip
    times = ProcessTimes()
    times.look({"learner": main}, seats)
    machine.core_ns = {learning: 100, acting: 300, **dict.fromkeys(emulator, 500)}
    times.look({"learner": main}, seats)
    assert times.core_ns == {"actor-0": 150 + 4250, "actor-1": 150 + 4250, "learner": 100}
    assert times.no_core_ns == {"actor-0": 30, "actor-1": 30, "learner": 10}


def test_threads_of_torch_count_for_the_learner_they_are_beside(monkeypatch):
    machine = Machine(monkeypatch, {1: [1, 11, 12], 2: [2, 21]})
    seats = {
        "actor-0": Seat("actor", 2), "buffer": Seat("buffer", 1), "learner": Seat("learner", 1),
    }  # fmt: skip
    times = ProcessTimes()
    times.look({"learner": 1, "actor-0": 2}, seats)
    machine.core_ns = {1: 5, 11: 5, 12: 5, 2: 7, 21: 1}
    times.look({"learner": 1, "actor-0": 2}, seats)
    assert times.core_ns == {"learner": 15, "actor-0": 8}


def test_a_role_that_does_not_run_yet_leaves_its_time_to_its_worker(monkeypatch):
    machine = Machine(monkeypatch, {1: [1, 11]})
    times = ProcessTimes()
    machine.core_ns = {1: 5}
    times.look({"actors-0": 1}, {"actor-0": Seat("actor", 0)})
    assert times.core_ns == {"actors-0": 5}
    for used_ns in (3, 4):
        machine.core_ns = {1: 5, 11: used_ns}
        times.look({"actors-0": 1}, {"actor-0": Seat("actor", 11)})
    assert times.core_ns == {"actors-0": 5, "actor-0": 1}, "its time before the first look is lost"


def test_ticks_of_a_process_do_not_add_up_to_other_threads(monkeypatch):
    """The time of a process is known in ticks, that of a thread exactly."""
    used_ns, tick_ns = 0, 10
    monkeypatch.setattr(
        module, "read_process", lambda pid: ProcessUse(0, used_ns // tick_ns * tick_ns, 0)
    )
    monkeypatch.setattr(module, "read_thread", lambda pid, thread: ThreadUse(used_ns, 0))
    times = ProcessTimes()
    for used_ns in range(0, 1000, 3):  # noqa: B007 - the lambdas read it
        times.look({"actor-0": 1}, {"actor-0": Seat("actor", 1)})
    assert used_ns <= times.core_ns["actor-0"] < used_ns + tick_ns


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="the kernel does not count")
def test_the_time_of_a_thread_is_read_from_the_system():
    mine = threading.get_native_id()
    assert read_thread(os.getpid(), mine).core_ns > 0
    assert read_thread(os.getpid(), NOBODY) is None
