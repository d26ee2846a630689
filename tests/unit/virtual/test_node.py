"""Simulated machines: who runs when, with times worked out by hand."""

from tests.fakes.scripted import gauge_row
from tianji.channels.gauges import Gauge
from tianji.costs.work import Work
from tianji.virtual import node
from tianji.virtual.clock import START_NS, VirtualClock
from tianji.virtual.node import QUANTUM_NS, Node, Worker

MS = 1_000_000


class Job(node.Job):
    """So many ticks, each of this work; notes when each began."""

    def __init__(self, clock, work, count, rows=()):
        super().__init__(*rows)
        self.clock, self.work, self.count = clock, work, count
        self.began_ms, self.took_ms = [], []

    def tick(self):
        if not self.count:
            return None
        self.count -= 1
        self.began_ms.append((self.clock.now_ns() - START_NS) / MS)
        return self.work

    def spend(self, took_ns):
        self.took_ms.append(took_ns / MS)


def work(ms, cpu_ms=None, strain=1.0):
    return Work(ms / 1e3, (ms if cpu_ms is None else cpu_ms) / 1e3, strain)


class Rig:
    def __init__(self, num_cores):
        self.clock, self.node = VirtualClock(), Node(num_cores)
        self.workers = []

    def add(self, piece, count=1, rows=(), **more):
        job = Job(self.clock, piece, count, rows)
        worker = Worker(self.clock, self.node, job, **more)
        self.workers.append(worker)
        return job, worker

    def run(self):
        for worker in self.workers:
            worker.wake()
        while self.clock.step():
            pass
        return self.clock.elapsed_s() * 1e3


def test_workers_with_cores_of_their_own_do_not_mind_each_other():
    rig = Rig(2)
    one, _ = rig.add(work(5), count=2)
    other, _ = rig.add(work(3), count=2)
    assert rig.run() == 10
    assert one.began_ms == [0, 5]
    assert other.began_ms == [0, 3]


def test_workers_take_turns_on_one_core():
    rig = Rig(1)
    one, _ = rig.add(work(5), count=2)
    other, _ = rig.add(work(5), count=2)
    assert rig.run() == 20
    assert one.began_ms == [0, 10]
    assert other.began_ms == [5, 15]


def test_short_ticks_get_as_much_of_a_core_as_long_ones():
    rig = Rig(1)
    short, _ = rig.add(work(0.25), count=40)
    rig.add(work(1), count=100)
    rig.run()
    assert short.began_ms[-1] < 21, "ten milliseconds of work took more than twice as long"


def test_who_slept_has_no_claim_to_the_time_it_slept_through():
    rig = Rig(1)
    awake, worker = rig.add(work(1), count=40)
    late, sleeper = rig.add(work(1), count=20)
    worker.wake()
    rig.clock.after(20 * MS, sleeper.wake)
    while rig.clock.step():
        pass
    meanwhile = [at for at in awake.began_ms if late.began_ms[0] < at < late.began_ms[-1]]
    assert len(meanwhile) >= 17, "the core was not shared"
    assert late.began_ms[0] <= 22


def test_a_slice_is_not_cut_while_nobody_waits():
    rig = Rig(1)
    job, _ = rig.add(work(QUANTUM_NS / MS / 4), count=20)
    rig.run()
    assert job.began_ms[-1] == 19 * QUANTUM_NS / MS / 4


def test_work_takes_longer_beside_others():
    rig = Rig(2)
    rig.add(work(11))
    job, _ = rig.add(work(4, strain=1.5), count=3)
    rig.run()
    assert job.took_ms == [6, 6, 4], "the last one was alone"


def test_on_more_cores_the_load_is_the_share_that_works():
    rig = Rig(5)
    rig.add(work(10))
    job, _ = rig.add(work(7, strain=2.0))
    rig.run()
    assert job.took_ms == [8], (
        "with one of four other cores at work, an eighth of the speed is lost"
    )


def test_who_waits_for_something_else_leaves_the_core_to_others():
    rig = Rig(1)
    rig.add(work(10, cpu_ms=2), count=3)
    rig.add(work(10, cpu_ms=2), count=3)
    assert rig.run() == 32, "three times ten side by side, begun 2 ms apart"


def test_a_worker_with_two_threads_waits_for_two_cores():
    rig = Rig(2)
    rig.add(work(3))
    both, _ = rig.add(work(4, cpu_ms=8), cores=2.0)
    rig.run()
    assert both.began_ms == [3]


def test_nobody_slips_in_before_a_worker_that_waits_for_two_cores():
    rig = Rig(2)
    rig.add(work(3), count=10)
    both, _ = rig.add(work(4, cpu_ms=8), cores=2.0)
    rig.add(work(2), count=10)
    rig.run()
    assert both.began_ms[0] <= 6


def test_one_and_a_half_cores_are_two_every_other_time():
    rig = Rig(4)
    _, worker = rig.add(work(1), cores=1.5)
    wanted = []
    for _ in range(6):
        wanted.append(worker.cores_wanted(4))
        worker._owed += 1.5 - wanted[-1]
    assert sum(wanted) == 9


def test_what_a_tick_sends_leaves_when_its_time_is_over():
    rig = Rig(1)
    left = []
    job, worker = rig.add(work(5))
    tick = job.tick

    def sending():
        done = tick()
        if done:
            worker.later(lambda: left.append(rig.clock.elapsed_s() * 1e3))
        return done

    job.tick = sending
    rig.run()
    assert left == [5]


def test_what_must_not_overtake_waits_and_the_rest_goes_at_once():
    rig = Rig(1)
    _, worker = rig.add(work(1))
    seen = []
    worker.after_what_left(lambda: seen.append("grant"))
    worker.later(lambda: seen.append("policy"))
    worker.after_what_left(lambda: seen.append("next grant"))
    assert seen == ["grant"]
    worker.deliver()
    assert seen == ["grant", "policy", "next grant"]


def test_time_asleep_is_counted():
    rig = Rig(1)
    row = gauge_row()
    job, worker = rig.add(work(2), rows=[row])
    rig.run()
    job.count = 1
    rig.clock.after(7 * MS, worker.wake)
    while rig.clock.step():
        pass
    assert row[Gauge.WAIT_NS] == 7 * MS


def test_a_worker_that_nobody_wakes_looks_around_by_itself():
    rig = Rig(1)
    job, worker = rig.add(work(2), idle_ns=50 * MS)
    worker.wake()
    rig.clock.step()  # begins
    rig.clock.step()  # ends, and sleeps
    job.count = 1
    while len(job.began_ms) < 2:
        rig.clock.step()
    assert job.began_ms == [0, 52]
