"""Random faults between two hosts: cut cables, dead actors, reborn buffers, restarted hosts.

Every item has a number of its own. While only cables and actors fail, each item that was sent
arrives exactly once. Whatever fails, none arrives twice, and in the end no slot is missing.
"""

import random

import pytest

from tests.unit.gateways.ends import Cable
from tests.unit.gateways.hosts import ActorsHost, TwoHosts
from tianji.channels.layout import STANDARD_FIELDS, Layout
from tianji.channels.orders import Order
from tianji.gateways.links import dialer
from tianji.gateways.links.state import LinkState
from tianji.types import Field, Stamp

LAYOUT = Layout((Field("number", "int64", (), "unroll"), *STANDARD_FIELDS), num_rows=2, num_envs=1)
NUM_SLOTS, NUM_ACTORS = 6, 3


class Run:
    """The roles of both hosts, as far as streams see them."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.hosts = TwoHosts(LAYOUT, NUM_SLOTS, NUM_ACTORS)
        self.cable = Cable(self.hosts.b.address)
        self.rounds = [0] * NUM_ACTORS
        self.sent, self.arrived = [], []
        self.count = 0
        self.hosts.a.gateway.close()
        self.hosts.a = self.new_actors_host()

    def new_actors_host(self):
        host = ActorsHost(LAYOUT, NUM_SLOTS, NUM_ACTORS, self.cable.address)
        for actor, row in enumerate(host.supervision):  # its supervisor goes on counting
            row[Order.RESETS] = self.hosts.b.orders[actor][Order.RESETS]
        for lane, row in zip(host.buffer._lanes.values(), host.supervision, strict=True):
            lane.resets_done = row[Order.RESETS]
        return host

    def turn(self):
        self.hosts.turn()
        self.cable.carry()
        for actor in range(NUM_ACTORS):
            self.act(actor)
        self.buffer()

    def act(self, actor):
        host = self.hosts.a
        if host.orders[actor][Order.RESETS] != host.supervision[actor][Order.RESETS]:
            return  # what the lane holds was granted to an actor that is dead
        sender = host.senders[actor]
        if sender.is_stale():
            sender.attach()
        grant = sender.reserve()
        if grant is not None:
            sender.unroll(grant.slot)["number"][:] = self.count
            self.sent.append((actor, self.count))
            self.count += 1
            sender.send(grant.slot, Stamp(actor, grant.round, 0, 0, 2, 1, 2))

    def buffer(self):
        receiver, lost = self.hosts.b.receiver, self.hosts.b.lost
        while lost:
            self.reset(*lost.pop(0))
        for actor in range(NUM_ACTORS):
            self.rounds[actor] += receiver.grant(actor, self.rounds[actor])
        while (slot := receiver.take()) is not None:
            self.keep(slot)

    def reset(self, actor, resets):
        for slot in self.hosts.b.receiver.reset_lane(actor):
            self.keep(slot)
        row = self.hosts.b.orders[actor]
        row[Order.RESETS] = row[Order.RESETS] if resets is None else resets
        row[Order.NUMBER] += 1

    def keep(self, slot):
        receiver = self.hosts.b.receiver
        number = int(receiver.arrays["number"][slot][0])
        self.arrived.append((receiver.stamp(slot).actor, number))
        receiver.release(slot)

    # ------------------------------------------------------------------------ faults

    def cut(self):
        self.cable.left = self.random.randrange(1, 2000)

    def kill_actor(self):
        self.hosts.a.replace_actor(self.random.randrange(NUM_ACTORS))

    def restart_buffer(self):
        self.hosts.b.start_buffer(NUM_ACTORS)

    def restart_actors_host(self):
        self.hosts.a.gateway.close()
        self.hosts.a = self.new_actors_host()

    def go_on(self, faults, num_items):
        """Run until this many items were sent, with a fault now and then."""
        while len(self.sent) < num_items:
            self.turn()
            if self.hosts.a.link.state is LinkState.UP and self.random.random() < 0.05:
                self.random.choice(faults)()
        self.cable.left = None

    def is_idle(self):
        return not any(host.link.session.kept() for host in (self.hosts.a, self.hosts.b))

    def close(self):
        self.hosts.close()
        self.cable.close()


@pytest.fixture(params=range(4))
def run(request, monkeypatch):
    monkeypatch.setattr(dialer, "_MAX_DELAY_NS", 5_000_000)  # cables are cut again and again
    made = Run(request.param)
    yield made
    made.close()


def test_every_item_arrives_once_while_cables_and_actors_fail(run):
    run.go_on([run.cut, run.kill_actor], num_items=1500)
    for _ in range(20_000):
        if len(run.arrived) >= len(run.sent):
            break
        run.hosts.turn()
        run.cable.carry()
        run.buffer()
    assert sorted(run.arrived) == sorted(run.sent)
    for actor in range(NUM_ACTORS):
        of_actor = [number for who, number in run.arrived if who == actor]
        assert of_actor == sorted(of_actor)


def test_nothing_arrives_twice_and_no_slot_is_lost_whatever_fails(run):
    faults = [run.cut, run.kill_actor, run.restart_buffer, run.restart_actors_host]
    run.go_on(faults, num_items=1500)
    assert len(set(run.arrived)) == len(run.arrived)
    assert set(run.arrived) <= set(run.sent)
    before = len(run.arrived)
    for _ in range(20_000):
        if len(run.arrived) >= before + 10 * NUM_SLOTS:
            break
        run.turn()
    assert len(run.arrived) >= before + 10 * NUM_SLOTS, "the stream stands still"
    for _ in range(20_000):  # what is on its way arrives, and nothing new begins
        run.hosts.turn()
        run.cable.carry()
        if run.is_idle():
            break
    while (slot := run.hosts.b.receiver.take()) is not None:
        run.keep(slot)
    for host in (run.hosts.b, run.hosts.a):
        assert sorted(slots_of(host.receiver)) == list(range(NUM_SLOTS))


def slots_of(receiver):
    """Every slot that a receiver can grant, once nobody holds one."""
    slots = []
    for lane in range(NUM_ACTORS):
        slots += receiver.reset_lane(lane)
    return [*slots, *receiver._free, *(slot for slot in receiver._held if slot >= 0)]
