"""A stream whose actors are on another host: faults at either end, and clocks that differ."""

import random

import numpy as np
import pytest

from tests.unit.channels.ends import wait_for
from tests.unit.gateways.ends import Cable
from tests.unit.gateways.hosts import ActorsHost, TwoHosts
from tianji.channels.gauges import Gauge
from tianji.channels.layout import STANDARD_FIELDS, Layout
from tianji.channels.orders import Order
from tianji.gateways import gateway, watch
from tianji.gateways.links import dialer
from tianji.gateways.links.state import LinkLimits, LinkState
from tianji.gateways.ports.stream_notes import Item, SlotPart, pack
from tianji.types import Field, Stamp

LAYOUT = Layout((Field("obs", "float32", (3,), "obs"), *STANDARD_FIELDS), num_rows=4, num_envs=2)
AHEAD_NS = 30 * 10**9


@pytest.fixture
def hosts(request):
    made = TwoHosts(LAYOUT, num_slots=4, num_actors=2, **getattr(request, "param", {}))
    yield made
    made.close()


def stamp(actor, number, started_ns=1, finished_ns=2):
    return Stamp(actor, number, number, number, 8, started_ns, finished_ns)


def send_one(hosts, actor, value=0.0, **times):
    sender = hosts.a.senders[actor]
    grant = sender.reserve()
    sender.unroll(grant.slot)["obs"][:] = value
    sender.send(grant.slot, stamp(actor, grant.round, **times))
    return grant


def take(hosts):
    """The actor and the round of the next item, which is released; None if there is none."""
    slot = hosts.b.receiver.take()
    if slot is None:
        return None
    found = hosts.b.receiver.stamp(slot)
    hosts.b.receiver.release(slot)
    return found.actor, found.round


def take_all(hosts):
    found = []
    while (item := take(hosts)) is not None:
        found.append(item)
    return found


@pytest.mark.parametrize("hosts", [{"ahead_ns": AHEAD_NS}, {"ahead_ns": -AHEAD_NS}], indirect=True)
def test_times_arrive_in_the_clock_of_the_buffers_host(hosts):
    hosts.settle()
    hosts.b.receiver.grant(0, 0)
    hosts.settle()
    sender, now_ns = hosts.a.senders[0], hosts.a.clock()
    grant = sender.reserve()
    unroll = sender.unroll(grant.slot)
    unroll["row_ns"][:] = [now_ns, now_ns + 5, 0, 0]
    sender.send(grant.slot, stamp(0, 0, started_ns=now_ns, finished_ns=now_ns + 7))
    hosts.settle()
    slot = hosts.b.receiver.take()
    found = hosts.b.receiver.stamp(slot)
    truth_ns = now_ns - hosts.a.clock.ahead_ns
    assert abs(found.started_ns - truth_ns) <= hosts.b.link.clock.error_ns < 10**9
    assert found.finished_ns - found.started_ns == 7
    row_ns = hosts.b.receiver.arrays["row_ns"][slot]
    assert row_ns[0] == found.started_ns and row_ns[1] == row_ns[0] + 5
    assert (row_ns[2:] == 0).all()


@pytest.mark.parametrize("hosts", [{"part": SlotPart.token(LAYOUT)}], indirect=True)
def test_of_a_token_only_what_the_buffer_counts_crosses(hosts):
    hosts.settle()
    hosts.b.receiver.grant(0, 0, 2)
    hosts.settle()
    for length in (7, 8):
        grant = hosts.a.senders[0].reserve()
        unroll = hosts.a.senders[0].unroll(grant.slot)
        unroll["obs"][:], unroll["episode_length"][:] = 1.0, length
        hosts.a.senders[0].send(grant.slot, stamp(0, grant.round))
    hosts.settle()
    for length in (7, 8):
        slot = hosts.b.receiver.take()
        assert (hosts.b.receiver.arrays["episode_length"][slot] == length).all()
        assert not hosts.b.receiver.arrays["obs"][slot].any(), "it stays where it was used"
        hosts.b.receiver.release(slot)


def test_bytes_arrive_as_they_were_written(hosts):
    hosts.settle()
    hosts.b.receiver.grant(1, 5)
    hosts.settle()
    sender = hosts.a.senders[1]
    grant = sender.reserve()
    obs = np.random.default_rng(1).random(sender.unroll(grant.slot)["obs"].shape)
    sender.unroll(grant.slot)["obs"][:] = obs
    sender.send(grant.slot, stamp(1, 5))
    hosts.settle()
    slot = hosts.b.receiver.take()
    assert (hosts.b.receiver.arrays["obs"][slot] == obs.astype(np.float32)).all()


def test_a_grant_never_overtakes_the_policy_of_before_it(hosts):
    hosts.settle()
    rng, version, needed, seen = random.Random(3), 0, {}, 0
    for number in range(300):
        if rng.random() < 0.7:
            version += 1
            hosts.b.policy.post(version, lambda payload: payload.fill(0))
        if hosts.b.receiver.grant(0, number):
            needed[number] = version
        for _ in range(rng.randrange(4)):
            hosts.turn()
        while (grant := hosts.a.senders[0].reserve()) is not None:
            assert hosts.a.policy.version() >= needed[grant.round]
            seen += 1
            hosts.a.senders[0].send(grant.slot, stamp(0, grant.round))
        take_all(hosts)
    assert seen > 100


def test_what_is_in_work_is_known_by_the_gauges_that_come_after_the_item_before(hosts):
    def in_work():
        return hosts.b.gauges[0][Gauge.STARTED_VERSION] - 1

    hosts.settle()
    hosts.b.receiver.grant(0, 0, 2)
    hosts.settle()
    hosts.a.gauges[0][Gauge.STARTED_VERSION] = 9 + 1
    hosts.settle()
    assert in_work() == 9
    send_one(hosts, 0)
    hosts.turn_until(lambda: hosts.b.receiver.take() is not None)
    assert in_work() == -1, "the item has arrived, and the actor has not told of another"
    hosts.a.gauges[0][Gauge.STARTED_VERSION] = 11 + 1
    hosts.turn_until(lambda: in_work() == 11)


def test_what_a_dead_actor_had_sent_arrives_before_its_loss_is_told(hosts):
    hosts.settle()
    hosts.b.receiver.grant(0, 0, 3)
    hosts.settle()
    for _ in range(2):
        send_one(hosts, 0)
    hosts.a.senders[0].reserve()  # and dies
    hosts.a.replace_actor(0)
    hosts.turn_until(lambda: hosts.b.lost)
    assert hosts.b.lost == [(0, 1)]
    arrived = hosts.b.receiver.reset_lane(0)
    assert [hosts.b.receiver.stamp(slot).round for slot in arrived] == [0, 1]
    for slot in arrived:
        hosts.b.receiver.release(slot)
    hosts.a.senders[0].attach()
    hosts.settle()
    assert hosts.b.receiver.grant(0, 2, 9) == 4, "slots were lost"
    hosts.settle()
    send_one(hosts, 0)
    hosts.settle()
    assert take_all(hosts) == [(0, 2)]


def test_an_actor_that_dies_before_it_was_announced_is_reported_too(hosts):
    hosts.settle()
    hosts.a.replace_actor(0)
    hosts.a.gateway.turn(0.0)
    hosts.a.replace_actor(0)
    hosts.turn_until(lambda: (0, 2) in hosts.b.lost)


def test_grants_for_a_dead_actor_are_not_given_to_its_successor(hosts):
    hosts.settle()
    hosts.b.receiver.grant(0, 0, 2)
    hosts.a.replace_actor(0)
    hosts.turn_until(lambda: hosts.b.lost)
    hosts.a.senders[0].attach()
    hosts.settle()
    assert hosts.a.senders[0].reserve() is None
    hosts.b.receiver.reset_lane(0)
    hosts.settle()
    hosts.b.receiver.grant(0, 7)
    hosts.settle()
    assert hosts.a.senders[0].reserve().round == 7


def test_a_reborn_buffer_voids_what_was_granted_before_and_both_go_on(hosts):
    hosts.settle()
    hosts.b.receiver.grant(0, 0, 2)
    hosts.b.receiver.grant(1, 0, 1)
    hosts.settle()
    on_its_way = send_one(hosts, 0)
    in_work = hosts.a.senders[0].reserve()
    hosts.a.gateway.turn(0.0)  # the item has left its host
    hosts.b.start_buffer(2)
    hosts.settle()
    sender = hosts.a.senders[0]
    assert sender.is_stale()
    sender.send(in_work.slot, stamp(0, in_work.round))
    assert on_its_way.round == 0
    for each in hosts.a.senders:
        each.attach()
    hosts.settle()
    assert take_all(hosts) == []
    assert hosts.b.receiver.is_attached(1)
    assert hosts.b.receiver.grant(0, 5, 9) == 4
    hosts.settle()
    send_one(hosts, 0)
    hosts.settle()
    assert take_all(hosts) == [(0, 5)]


def test_an_item_of_an_older_generation_finds_no_slot(hosts):
    hosts.settle()
    hosts.b.receiver.grant(0, 0, 2)
    hosts.settle()
    hosts.b.receiver.reset_lane(0)
    hosts.settle()
    hosts.a.senders[0].attach()
    hosts.b.receiver.grant(0, 2, 2)
    hosts.settle()
    port, nbytes = hosts.b.actors, LAYOUT.slot_bytes
    old, new = (pack(Item(0, generation, stamp(0, 2))) for generation in (1, 2))
    assert port.place(old, nbytes) is None
    port.receive(old, None)
    assert port.num_void == 1
    assert port.place(new, nbytes) is not None


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_a_lane_is_not_joined_anew_while_an_item_is_received_into_its_slot(hosts, is_interrupted):
    hosts.settle()
    hosts.b.receiver.grant(0, 0)
    hosts.settle()
    port, note = hosts.b.actors, pack(Item(0, 1, stamp(0, 0)))
    body = port.place(note, LAYOUT.slot_bytes)
    hosts.b.start_buffer(2)
    port.pump()
    assert not hosts.b.receiver.is_attached(0)
    assert hosts.b.receiver.is_attached(1)
    granted = hosts.b.receiver.grant(1, 0, 9)
    assert granted == 3, "the slot that is being written was granted"
    if is_interrupted:
        port.interrupted()
    else:
        body[:] = bytes(len(body))
        port.receive(note, body)
    port.pump()
    assert hosts.b.receiver.is_attached(0)
    assert hosts.b.receiver.take() is None


def test_the_actors_host_may_be_lost_and_another_takes_its_place(hosts):
    hosts.settle()
    hosts.b.policy.post(7, lambda payload: payload.fill(7))
    hosts.b.receiver.grant(0, 0, 2)
    hosts.settle()
    send_one(hosts, 0)
    hosts.settle()
    hosts.a.gateway.close()
    hosts.a = ActorsHost(LAYOUT, 4, 2, hosts.b.address)
    hosts.turn_until(lambda: len(hosts.b.lost) == 2)
    assert sorted(hosts.b.lost) == [(0, None), (1, None)]
    arrived = hosts.b.receiver.reset_lane(0) + hosts.b.receiver.reset_lane(1)
    assert len(arrived) == 1
    for slot in arrived:
        hosts.b.receiver.release(slot)
    hosts.settle()
    assert hosts.a.policy.version() == 7
    assert hosts.b.receiver.is_attached(0)
    assert hosts.b.receiver.grant(1, 3, 9) == 4
    hosts.settle()
    send_one(hosts, 1)
    hosts.settle()
    assert take_all(hosts) == [(1, 3)]


def test_an_actor_that_had_died_before_its_host_was_lost_is_reported_with_it(hosts):
    """What it had left in the memory there is gone too."""
    hosts.settle()
    hosts.a.senders[1] = None
    hosts.a.supervision[1][Order.RESETS] += 1
    hosts.turn_until(lambda: hosts.b.lost)
    assert hosts.b.lost == [(1, 1)]
    hosts.b.link.give_up()
    assert hosts.b.lost == [(1, 1), (0, None), (1, None)]
    hosts.b.link.give_up()
    assert len(hosts.b.lost) == 3, "once"


def test_the_buffers_host_may_be_restarted_and_the_actors_begin_anew(hosts):
    hosts.settle()
    hosts.b.receiver.grant(0, 0, 3)
    hosts.settle()
    hosts.b.gateway.close()
    send_one(hosts, 0)  # nobody will ever have it
    for _ in range(3):
        hosts.a.gateway.turn(0.0)
    old_address = hosts.b.address
    hosts.b = _buffer_host_at(old_address)
    hosts.turn_until(lambda: hosts.a.link.session.peer == hosts.b.link.session.own)
    hosts.turn_until(hosts.a.senders[0].is_stale)
    hosts.a.senders[0].attach()
    hosts.settle()
    assert hosts.b.receiver.grant(0, 1, 9) == 4
    hosts.settle()
    for _ in range(4):
        send_one(hosts, 0)
    hosts.settle()
    assert take_all(hosts) == [(0, number) for number in range(1, 5)], "slots were lost"


def _buffer_host_at(address):
    import unittest.mock

    from tests.unit.gateways import hosts as module
    from tianji.gateways.gateway import Gateway

    class AtOldAddress(Gateway):
        def listen(self, *_):
            return super().listen(*address)

    with unittest.mock.patch.object(module, "Gateway", AtOldAddress):
        return module.BufferHost(LAYOUT, 4, 2)


def test_slots_of_items_that_are_not_confirmed_stay_in_use_and_actors_are_paced(hosts):
    hosts.settle()
    hosts.b.receiver.grant(0, 0, 4)
    hosts.settle()
    for _ in range(4):
        send_one(hosts, 0)
    for _ in range(5):  # the buffer's host does not answer
        hosts.a.gateway.turn(0.0)
    assert not hosts.a.receiver.grant(0, 99)
    hosts.settle()
    assert len(take_all(hosts)) == 4
    assert hosts.a.receiver.grant(0, 99)


def test_every_wait_is_ended_by_a_bell_or_a_socket(monkeypatch):
    """Nobody wakes up by itself here: with one ring missing, this would stand still."""
    monkeypatch.setattr(gateway, "MAX_WAIT_S", 1000.0)
    monkeypatch.setattr(watch, "_SIGN_OF_LIFE_S", 1000.0)
    never = LinkLimits(ping_period_ns=10**15, silent_after_ns=10**15)
    hosts = TwoHosts(LAYOUT, num_slots=2, num_actors=1, limits=never)
    hosts.settle()
    hosts.turn_until(lambda: min(host.link._ping_ns for host in (hosts.a, hosts.b)) > 10**14)
    sender, receiver, found = hosts.a.senders[0], hosts.b.receiver, []
    for host in (hosts.a, hosts.b):
        host.gateway.start()

    def find(look):
        found.append(look())
        return found[-1] is not None

    for number in range(100):
        receiver.grant(0, number)
        wait_for(hosts.a.actor_bells[0], lambda: find(sender.reserve))
        sender.send(found[-1].slot, stamp(0, number))
        wait_for(hosts.b.buffer_bell, lambda: find(receiver.take))
        assert receiver.stamp(found[-1]).round == number
        receiver.release(found[-1])
    hosts.close()


def test_nothing_is_lost_or_doubled_while_the_cable_is_cut_again_and_again(monkeypatch):
    monkeypatch.setattr(dialer, "_MAX_DELAY_NS", 5_000_000)  # of the real clock
    hosts = TwoHosts(LAYOUT, num_slots=6, num_actors=2)
    cable = Cable(hosts.b.address)
    hosts.a.gateway.close()
    hosts.a = ActorsHost(LAYOUT, 6, 2, cable.address)
    rng, granted, found, total = random.Random(5), [0, 0], [[], []], 300

    def turn():
        hosts.turn()
        cable.carry()
        for actor in range(2):
            if granted[actor] < total and hosts.b.receiver.grant(actor, granted[actor]):
                granted[actor] += 1
            sender = hosts.a.senders[actor]
            if (grant := sender.reserve()) is not None:
                sender.unroll(grant.slot)["obs"][:] = grant.round
                sender.send(grant.slot, stamp(actor, grant.round))
        while (slot := hosts.b.receiver.take()) is not None:
            item = hosts.b.receiver.stamp(slot)
            assert (hosts.b.receiver.arrays["obs"][slot] == item.round).all()
            found[item.actor].append(item.round)
            hosts.b.receiver.release(slot)

    cuts = 0
    while min(map(len, found)) < total:
        turn()
        if cuts < 12 and hosts.a.link.state is LinkState.UP and rng.random() < 0.02:
            cable.left = rng.randrange(1, 3000)
            cuts += 1
    assert found == [list(range(total))] * 2
    assert hosts.a.link.report().num_connections > 5
    assert hosts.b.lost == []
    hosts.close()
    cable.close()
