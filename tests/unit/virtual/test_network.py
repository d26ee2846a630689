"""Links: transfer times and queues worked out by hand."""

import pytest

from tianji.virtual.clock import Network, NetworkModel, VirtualClock


@pytest.fixture
def clock():
    return VirtualClock()


def arrivals(clock, messages, num_nodes=3, bytes_per_s=1e6, latency_s=0.01):
    """Send (source, target, bytes) all at once; when each arrived, in milliseconds."""
    network = Network(clock, NetworkModel(bytes_per_s, latency_s), num_nodes)
    at = {}
    for number, (source, target, nbytes) in enumerate(messages):
        network.send(source, target, nbytes, lambda n=number: at.update({n: clock.elapsed_s()}))
    while clock.step():
        pass
    return [round(at[number] * 1e3, 6) for number in range(len(messages))], network


def test_a_message_leaves_travels_and_enters(clock):
    (at,), _ = arrivals(clock, [(1, 0, 5000)])
    assert at == 5 + 10 + 5


def test_messages_of_one_sender_wait_in_line(clock):
    at, _ = arrivals(clock, [(0, 1, 5000), (0, 2, 5000)])
    assert at == [20, 25]


def test_messages_of_two_senders_wait_at_the_receiver(clock):
    at, network = arrivals(clock, [(1, 0, 5000), (2, 0, 5000)])
    assert at == [20, 25]
    assert network.into[0].busy_ns == 10_000_000


def test_the_two_directions_do_not_mind_each_other(clock):
    at, _ = arrivals(clock, [(1, 0, 5000), (0, 1, 5000)])
    assert at == [20, 20]


def test_a_signal_takes_the_latency_alone(clock):
    network = Network(clock, NetworkModel(1.0, 0.25), 2)
    seen = []
    network.send(0, 1, 100, lambda: None)
    network.signal(lambda: seen.append(clock.elapsed_s()))
    while not seen:
        clock.step()
    assert seen == [0.25]


def test_a_ring_sends_every_part_twice_around():
    model = NetworkModel(bytes_per_s=1000.0, latency_s=0.5)
    assert model.all_reduce_s(400, num_members=2) == pytest.approx(2 * (0.2 + 0.5))
    assert model.all_reduce_s(400, num_members=4) == pytest.approx(6 * (0.1 + 0.5))
