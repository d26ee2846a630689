"""A buffer over lanes in this process: unrolls are put in and batches are taken by hand."""

import time

from tests.fakes.replay import make_replay, with_place
from tests.fakes.scripted import scripted_layout
from tianji.balance.set_point import SetPoint
from tianji.buffer.role import Buffer
from tianji.buffer.stores.queue import Queue
from tianji.buffer.window import RatioWindow, WindowPlan
from tianji.channels.inproc import InprocStream
from tianji.channels.orders import BufferRows, Order
from tianji.config.run import RunConfig
from tianji.learner.progress import Progress
from tianji.types import PLACE, Stamp

STEPS = 8  # of an unroll: 4 rows, 2 environments
LAYOUT = with_place(scripted_layout(4, 2))


class Stream(InprocStream):
    """Lanes may be without a sender."""

    def __init__(self, num_slots, num_lanes):
        super().__init__(LAYOUT, num_slots, num_lanes)
        self.missing = set()

    def is_attached(self, lane):
        return lane not in self.missing

    def grant(self, lane, round_number, count=1):
        return super().grant(lane, round_number, count) if self.is_attached(lane) else 0


class Rig:
    def __init__(
        self,
        point=(2, 0, 1),
        max_lag=1,
        num_actors=2,
        replay=False,
        num_slots=12,
        now_ns=time.monotonic_ns,
        may_park=False,
    ):
        self.now_ns = now_ns
        self.may_park = may_park
        self.stream = Stream(num_slots, num_actors)
        self.stream.arrays["valid"][:] = True
        self.senders = [self.stream.sender(i) for i in range(num_actors)]
        self.rows = BufferRows.private(num_actors)
        self.gauges = self.rows.gauges
        self.actor_gauges = [actor.gauges for actor in self.rows.actors]
        self.orders = [actor.orders for actor in self.rows.actors]
        self.progress = Progress(RunConfig(algorithm="ppo"))
        self.buffer = self.make_buffer(point, max_lag, replay=replay)
        self.version = 0

    def make_buffer(self, point, max_lag, first_row=0, replay=False):
        store = Queue(self.stream, LAYOUT.env_axes())
        if replay:
            # One update for each unroll: it takes 16 items, 2 for each of 8 steps.
            store = make_replay(
                self.stream, LAYOUT, capacity=12, warmup=point[1], updates_per_batch=point[0]
            )
        plan = WindowPlan(SetPoint(*point), max_lag, self.may_park, stores_copies=replay)
        self.window = RatioWindow(plan, self.stream, self.rows, self.now_ns)
        return Buffer(self.window, store, self.progress, first_row)

    def granted(self):
        """The rounds that each actor may make."""
        return [[grant.round for grant in lane] for lane in self.stream.granted]

    def send(self, actor, oldest=None, steps=STEPS, episodes=()):
        """Make the next unroll of an actor; episodes: (row, env, return, length, finished_ns)."""
        grant = self.senders[actor].reserve()
        unroll = self.senders[actor].unroll(grant.slot)
        unroll["episode_length"][:] = 0
        unroll[PLACE][:] = 0, 4 * grant.round, 4
        for row, env, episode_return, length, at_ns in episodes:
            unroll["episode_return"][row, env] = episode_return
            unroll["episode_length"][row, env] = length
            unroll["row_ns"][row] = at_ns
        oldest = self.version if oldest is None else oldest
        stamp = Stamp(actor, grant.round, oldest, self.version, steps, 0, 0)
        self.senders[actor].send(grant.slot, stamp)

    def replace(self, actor):
        """What the supervisor does when an actor died."""
        self.rows.actors[actor].supervision[Order.RESETS] += 1
        self.rows.supervision[Order.RESETS] += 1

    def give_up(self, actor):
        """What the supervisor does with an actor that it starts no more."""
        self.rows.actors[actor].supervision[Order.GIVEN_UP] = 1

    def take(self):
        self.buffer.tick()
        return self.buffer.take()

    def finish(self, batch):
        self.version += 1
        self.buffer.finish(batch, self.version)

    def make_version(self, *actors):
        for actor in actors:
            self.send(actor)
        self.finish(self.take())


def turns(batch):
    return [(stamp.round, stamp.actor) for stamp in batch.stamps]
