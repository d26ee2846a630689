"""The buffer alone: unrolls are put into its lanes by hand, batches are taken by hand."""

import itertools

from tests.fakes.scripted import gauge_row, scripted_layout
from tianji.balance.balance import SetPoint
from tianji.buffer import late
from tianji.buffer.queue import Queue
from tianji.buffer.replay import Replay
from tianji.buffer.role import Buffer, BufferPlan
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.inproc import InprocStream
from tianji.config.run import RunConfig
from tianji.observe.progress import Progress
from tianji.types import Stamp

STEPS = 8  # of an unroll: 4 rows, 2 environments


class Stream(InprocStream):
    """Lanes may be without a sender."""

    def __init__(self, num_slots, num_lanes):
        super().__init__(scripted_layout(4, 2), num_slots, num_lanes)
        self.missing = set()

    def is_attached(self, lane):
        return lane not in self.missing

    def grant(self, lane, round_number):
        return self.is_attached(lane) and super().grant(lane, round_number)


class Rig:
    def __init__(self, point=(2, 0, 1), max_lag=1, num_actors=2, replay=False, num_slots=12):
        self.stream = Stream(num_slots, num_actors)
        self.stream.arrays["valid"][:] = True
        self.senders = [self.stream.sender(i) for i in range(num_actors)]
        self.gauges = gauge_row()
        self.actor_gauges = [gauge_row() for _ in range(num_actors)]
        self.progress = Progress(RunConfig(algorithm="ppo"))
        store = Queue(self.stream)
        if replay:
            store = Replay(self.stream, 6, 4, 1, 1, 16, 0.9, seed=0, save_items=True)
        self.buffer = Buffer(
            BufferPlan(SetPoint(*point), max_lag, first_row=0),
            self.stream, store, self.progress, self.gauges, self.actor_gauges,
        )  # fmt: skip
        self.version = 0

    def granted(self):
        """The rounds that each actor may make."""
        return [[grant.round for grant in lane] for lane in self.stream.granted]

    def send(self, actor, oldest=None, steps=STEPS, episodes=()):
        """Make the next unroll of an actor; episodes: (row, env, return, length, finished_ns)."""
        grant = self.senders[actor].reserve()
        unroll = self.senders[actor].unroll(grant.slot)
        unroll["episode_length"][:] = 0
        for row, env, episode_return, length, at_ns in episodes:
            unroll["episode_return"][row, env] = episode_return
            unroll["episode_length"][row, env] = length
            unroll["row_ns"][row] = at_ns
        oldest = self.version if oldest is None else oldest
        stamp = Stamp(actor, grant.round, oldest, self.version, steps, 0, 0)
        self.senders[actor].send(grant.slot, stamp)

    def take(self):
        self.buffer.tick()
        return self.buffer.take()

    def finish(self, batch):
        self.version += 1
        return self.buffer.finish(batch, self.version)

    def make_version(self, *actors):
        for actor in actors:
            self.send(actor)
        self.finish(self.take())


def turns(batch):
    return [(stamp.round, stamp.actor) for stamp in batch.stamps]


def test_it_grants_what_the_balance_allows_and_numbers_the_rounds():
    rig = Rig(point=(2, 0, 1))
    rig.buffer.tick()
    assert rig.granted() == [[0, 1], [0, 1]]
    rig.buffer.tick()
    assert rig.granted() == [[0, 1], [0, 1]], "the same allowance was granted twice"


def test_a_finished_version_lets_the_actors_go_on():
    rig = Rig(point=(2, 0, 0))
    rig.buffer.tick()
    rig.send(0)
    rig.send(1)
    batch = rig.take()
    assert rig.granted() == [[], []], "serial training waits for the version"
    rig.finish(batch)
    assert rig.granted() == [[1], [1]]


def test_there_is_no_batch_before_enough_has_arrived_and_never_two_at_once():
    rig = Rig()
    rig.buffer.tick()
    assert rig.take() is None
    rig.send(0)
    assert rig.take() is None
    for actor in (1, 0, 1):
        rig.send(actor)
    batch = rig.take()
    assert turns(batch) == [(0, 0), (0, 1)]
    assert rig.take() is None, "a batch was given while another is in work"
    rig.finish(batch)
    assert turns(rig.take()) == [(1, 0), (1, 1)]


def test_the_order_of_arrival_never_matters():
    for order in set(itertools.permutations((0, 0, 1, 1, 2, 2))):
        rig = Rig(point=(3, 0, 1), num_actors=3)
        rig.buffer.tick()
        for actor in order:
            rig.send(actor)
            rig.buffer.tick()
        first = rig.take()
        rig.finish(first)
        assert turns(first) == [(0, 0), (0, 1), (0, 2)], order
        assert turns(rig.take()) == [(1, 0), (1, 1), (1, 2)], order


def test_the_oldest_enter_first_so_that_nothing_waits_until_it_is_too_old():
    rig = Rig(point=(2, 0, 1), max_lag=3)
    rig.version = 3
    rig.buffer.continue_at(3)
    rig.buffer.tick()
    for actor, oldest in ((0, 3), (1, 3), (0, 3), (1, 1)):
        rig.send(actor, oldest=oldest)
    assert turns(rig.take()) == [(1, 1), (0, 0)]


def test_lag_is_measured_when_an_unroll_enters():
    rig = Rig(point=(2, 0, 1), max_lag=5)
    rig.version = 4
    rig.buffer.continue_at(4)
    rig.buffer.tick()
    rig.send(0, oldest=4)
    rig.send(1, oldest=1)
    rig.take()
    assert rig.buffer.lag.summary() == {"mean": 1.5, "p95": 3, "max": 3}


def test_arrivals_are_counted_when_they_arrive_and_steps_when_they_enter():
    rig = Rig()
    rig.buffer.tick()
    rig.send(0, steps=7)
    assert rig.buffer.tick()
    assert (rig.gauges[Gauge.ITEMS], rig.gauges[Gauge.RECEIVED_STEPS]) == (1, 7)
    assert rig.progress.env_steps == 0
    rig.send(1, steps=8)
    rig.take()
    assert rig.progress.env_steps == 15
    assert not rig.buffer.tick(), "nothing arrived"


def test_finish_says_how_many_steps_were_used_for_the_first_time():
    rig = Rig()
    rig.buffer.tick()
    rig.send(0, steps=7)
    rig.send(1, steps=8)
    assert rig.finish(rig.take()) == 15


def test_episodes_reach_progress_in_the_order_of_their_rows_whatever_arrives_first():
    rig = Rig()
    seen = []
    rig.progress.add = lambda episodes, steps: seen.extend(episodes)
    rig.buffer.tick()
    rig.send(1, episodes=[(0, 1, 10.0, 5, 100), (2, 0, 30.0, 6, 300)])
    rig.send(0, episodes=[(0, 0, 5.0, 7, 90), (1, 0, 20.0, 8, 200)])
    rig.take()
    assert [tuple(episode) for episode in seen] == [
        (90, 5.0, 7, 0), (100, 10.0, 5, 1), (200, 20.0, 8, 0), (300, 30.0, 6, 1)
    ]  # fmt: skip


def test_episodes_of_several_rounds_reach_progress_in_the_order_they_finished():
    rig = Rig(point=(2, 2, 0), num_actors=1)
    seen = []
    rig.progress.add = lambda episodes, steps: seen.extend(episodes)
    rig.buffer.tick()
    for number in range(4):
        base = 100 * number
        rig.send(0, episodes=[(0, 0, 1.0, 5, base + 1), (3, 1, 1.0, 5, base + 4)])
    rig.take()
    times = [episode.finished_ns for episode in seen]
    assert times == sorted(times)


def test_rows_that_repeat_the_unroll_before_hold_no_new_episodes():
    rig = Rig(point=(1, 0, 0), num_actors=1)
    rig.buffer = Buffer(
        BufferPlan(SetPoint(1, 0, 0), 1, first_row=2),
        rig.stream, Queue(rig.stream), rig.progress, rig.gauges, rig.actor_gauges,
    )  # fmt: skip
    rig.buffer.tick()
    rig.send(0, episodes=[(1, 0, 10.0, 5, 100), (2, 0, 20.0, 5, 200)])
    rig.take()
    assert (rig.progress.episodes, rig.progress.mean_return) == (1, 20.0)


def test_warm_up_enters_the_store_but_not_the_ratio():
    rig = Rig(point=(1, 3, 0), replay=True)
    rig.buffer.tick()
    assert rig.granted() == [[0, 1], [0, 1]]
    for actor in (0, 1, 0):
        rig.send(actor)
    assert rig.take() is None
    rig.send(1)
    batch = rig.take()
    assert batch.num_items == 16
    assert (rig.buffer.items_put, rig.buffer.items_taken) == (STEPS, 16)
    rig.finish(batch)
    rig.make_version(0)
    assert (rig.buffer.items_put, rig.buffer.items_taken) == (2 * STEPS, 32)


def test_an_actor_that_is_not_there_yet_keeps_its_share():
    rig = Rig(point=(2, 0, 0))
    rig.stream.missing.add(1)
    rig.buffer.tick()
    assert rig.granted() == [[0], []]
    rig.stream.missing.clear()
    rig.buffer.tick()
    assert rig.granted() == [[0], [0]]


def test_the_share_of_an_actor_that_was_given_up_goes_to_the_others():
    rig = Rig(point=(2, 0, 0))
    rig.actor_gauges[0][Gauge.ACTIVITY] = Activity.STOPPED
    rig.buffer.tick()
    assert rig.granted() == [[], [0, 1]]


def test_after_a_reset_what_was_sent_is_kept_and_the_rest_is_made_again():
    rig = Rig(point=(2, 0, 1))
    rig.buffer.tick()
    rig.send(0)
    rig.senders[0].reserve()
    rig.actor_gauges[0][Gauge.LANE_RESETS] += 1
    assert rig.buffer.tick()
    assert rig.actor_gauges[0][Gauge.LANE_RESETS_DONE] == 1
    assert rig.granted() == [[1], [0, 1]], "rounds have a gap or a double"
    rig.send(1)
    assert turns(rig.take()) == [(0, 0), (0, 1)]


def test_a_lane_is_reset_once_for_every_replacement():
    rig = Rig(point=(2, 0, 1))
    rig.buffer.tick()
    rig.actor_gauges[1][Gauge.LANE_RESETS] = 1
    rig.buffer.tick()
    assert not rig.buffer.tick(), "the lane was reset again"
    rig.actor_gauges[1][Gauge.LANE_RESETS] = 2
    assert rig.buffer.tick()
    assert rig.granted() == [[0, 1], [0, 1]]


def in_work_since(rig, actor, version):
    """What an actor shows while it makes an unroll that began under a version."""
    rig.actor_gauges[actor][Gauge.STARTED_VERSION] = version + 1
    return rig.senders[actor].reserve()


def overtaken(monkeypatch):
    """Actor 0 is still at its first unroll, of version 0, when version 2 is due; max_lag is 1."""
    clock = [100.0]
    monkeypatch.setattr(late.time, "monotonic", lambda: clock[0])
    rig = Rig(point=(1, 0, 1), max_lag=1)
    rig.buffer.tick()
    grant = in_work_since(rig, 0, version=0)
    rig.make_version(1)
    rig.send(1)
    return rig, grant, clock


def deliver(rig, grant):
    """Actor 0 hands over the unroll it has in work, which version 0 began."""
    rig.senders[0].send(grant.slot, Stamp(0, grant.round, 0, 1, 2, 0, 0))
    rig.actor_gauges[0][Gauge.STARTED_VERSION] = 0


def test_an_unroll_that_would_be_too_old_is_hurried_and_waited_for(monkeypatch):
    rig, grant, _ = overtaken(monkeypatch)
    assert rig.take() is None
    assert rig.actor_gauges[0][Gauge.HURRY] == grant.round + 1
    assert rig.actor_gauges[1][Gauge.HURRY] == 0
    deliver(rig, grant)
    assert turns(rig.take()) == [(0, 0)], "the one that would be too old comes first"
    assert rig.buffer.discarded == 0
    assert rig.buffer.lag.summary()["max"] == 1


def test_patience_ends_and_what_comes_too_late_is_discarded_and_counted(monkeypatch):
    rig, grant, clock = overtaken(monkeypatch)
    assert rig.take() is None
    clock[0] += late.PATIENCE_S
    batch = rig.take()
    assert turns(batch) == [(1, 1)]
    rig.finish(batch)
    deliver(rig, grant)
    assert rig.take() is None, "what is older than the bound was taken"
    assert rig.buffer.discarded == 1
    assert len(rig.stream._free) + sum(map(len, rig.stream.granted)) == 12, "a slot is lost"
    before = [len(lane) for lane in rig.granted()]
    rig.buffer.tick()
    after = [len(lane) for lane in rig.granted()]
    assert sum(after) == sum(before) + 1, "what was discarded is made again"


def test_an_unroll_that_will_be_in_time_holds_up_nobody():
    rig = Rig(point=(1, 0, 1), max_lag=1)
    rig.buffer.tick()
    in_work_since(rig, 0, version=0)
    rig.send(1)
    assert rig.take() is not None
    assert rig.actor_gauges[0][Gauge.HURRY] == 0


def test_what_arrives_while_the_batch_is_being_made_up_is_seen():
    """It was in work a moment ago: its actor has sent it and shows nothing any more."""
    rig = Rig(point=(1, 0, 1), max_lag=1)
    rig.buffer.tick()
    rig.send(1)
    rig.buffer.tick()
    rig.send(0)
    assert turns(rig.buffer.take()) == [(0, 0)]


def test_a_replaced_actor_does_not_hold_up_the_next_version(monkeypatch):
    rig, grant, _ = overtaken(monkeypatch)
    rig.actor_gauges[0][Gauge.LANE_RESETS] += 1
    rig.senders[0].attach()
    batch = rig.take()
    assert batch is not None, "the version waits for an unroll that died with its actor"


def test_a_replaced_actor_is_not_hurried_for_what_its_predecessor_did_not_finish(monkeypatch):
    rig, grant, _ = overtaken(monkeypatch)
    assert rig.take() is None
    rig.actor_gauges[0][Gauge.LANE_RESETS] += 1
    rig.buffer.tick()
    assert rig.granted()[0][0] == grant.round
    assert rig.actor_gauges[0][Gauge.HURRY] <= grant.round


def test_a_new_buffer_hurries_nobody_for_what_the_old_one_waited_for(monkeypatch):
    rig, *_ = overtaken(monkeypatch)
    rig.actor_gauges[0][Gauge.HURRY] = 180
    Buffer(
        BufferPlan(SetPoint(1, 0, 1), 1, first_row=0),
        rig.stream, Queue(rig.stream), rig.progress, rig.gauges, rig.actor_gauges,
    )  # fmt: skip
    assert rig.actor_gauges[0][Gauge.HURRY] == 0


def test_a_saved_buffer_goes_on_with_the_rounds_that_entered():
    rig = Rig(point=(2, 0, 1), max_lag=3)
    rig.buffer.tick()
    rig.make_version(0, 1)
    rig.send(1)
    rig.buffer.tick()
    state = rig.buffer.state()
    assert state["rounds"] == [1, 1], "what waits or is in work is made again"
    other = Rig(point=(2, 0, 1), max_lag=3)
    other.buffer.load_state(state)
    other.buffer.continue_at(1)
    other.version = 1
    other.buffer.tick()
    assert other.granted() == [[1, 2], [1, 2]]
    other.make_version(1, 0)
    assert other.buffer.lag.counts() == [4]
    assert (other.buffer.items_put, other.buffer.items_taken) == (4, 4)


def test_a_store_that_comes_back_full_needs_no_second_warm_up():
    rig = Rig(point=(1, 3, 0), replay=True)
    rig.buffer.tick()
    rig.make_version(0, 1, 0, 1)
    full = Rig(point=(1, 3, 0), replay=True)
    full.buffer.load_state(rig.buffer.state())
    full.buffer.tick()
    assert full.granted() == [[2], []], "the next version needs one more unroll"
    full.send(0)
    assert full.take() is not None
    state = rig.buffer.state()
    empty = Rig(point=(1, 3, 0), replay=True)
    empty.buffer.load_state({**state, "store": {"rng": state["store"]["rng"]}})
    empty.buffer.tick()
    assert empty.granted() == [[2, 3], [2, 3]], "an empty store is warmed up again"
