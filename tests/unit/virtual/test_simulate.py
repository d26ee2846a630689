"""Whole simulations against schedules worked out by hand."""

import dataclasses

import pytest

from tests.unit.virtual.scenarios import STEPS, run, scenario
from tianji.channels.gauges import Gauge
from tianji.virtual.clock import NetworkModel
from tianji.virtual.simulate import start_groups


def finish_times(num_versions=4, **values):
    """When each version was published, in seconds."""
    (group,) = start_groups(scenario(**values))
    times = []
    while len(times) < num_versions:
        assert group.clock.step()
        if group.learner.version > len(times):
            times.append(round(group.clock.elapsed_s(), 9))
    return times


def test_serial_training_samples_and_learns_in_turn():
    """Two actors need 2 s for an unroll each, the learner 3 s: 5 s a version."""
    assert finish_times(unroll_s=(2.0, 2.0), version_s=3.0, lag=0) == [5, 10, 15, 20]


def test_with_a_lag_of_one_the_slower_side_sets_the_pace():
    """Unrolls are there at 2, 4; the learner is busy from 2 on, without a break."""
    assert finish_times(unroll_s=(2.0, 2.0), version_s=3.0) == [5, 8, 11, 14]


def test_slow_actors_set_the_pace():
    """Unrolls of two actors are there at 4, 8, 12 ...; each version takes 1 s after that."""
    assert finish_times(unroll_s=(4.0, 4.0), version_s=1.0) == [5, 9, 13, 17]


def test_uneven_actors_share_the_work_by_their_speed():
    """A version takes 3 unrolls. One actor makes one a second, the other one in two: 3 in 2 s."""
    found = run(unroll_s=(1.0, 2.0), version_s=0.5, per_version=3, num_versions=40)
    assert found.produced == pytest.approx(1.5 * STEPS, rel=0.05)
    assert found.bottleneck == "sampling"


def test_rates_count_steps_and_the_learner_is_the_limit():
    found = run(unroll_s=(2.0, 2.0), version_s=4.0)
    assert found.produced == pytest.approx(2 * STEPS / 4)
    assert found.received == pytest.approx(2 * STEPS / 4)
    assert found.trained == pytest.approx(6 * STEPS / 4)
    assert found.busy_share["learner"] == pytest.approx(1.0)
    assert found.busy_share["actors"] == pytest.approx(0.5)
    assert found.bottleneck == "training"


@pytest.mark.parametrize("lag", [0, 1])
def test_the_lag_is_the_set_point(lag):
    assert run(unroll_s=(2.0, 2.0), version_s=4.0, lag=lag).lag_versions == lag


def test_receiving_can_be_the_limit():
    found = run(unroll_s=(1.0, 1.0), version_s=0.5, receive_s=1.0)
    assert found.bottleneck == "communication"
    assert 0.9 * 2 * STEPS / 2.5 < found.received < 2 * STEPS / 2.5


def test_fewer_cores_than_workers_are_shared():
    """Two actors of 2 s an unroll and a learner of 2 s: 6 s of work a version on one core."""
    found = run(unroll_s=(2.0, 2.0), version_s=2.0, cores_per_node=1, num_versions=40)
    assert found.produced == pytest.approx(2 * STEPS / 6, rel=0.02)
    assert found.bottleneck == "processors"


@pytest.mark.parametrize("num_nodes", [1, 2])
def test_nothing_is_lost_on_the_way(num_nodes):
    (group,) = start_groups(
        scenario(unroll_s=(1.0, 1.3, 0.7, 2.0), num_nodes=num_nodes, unroll_bytes=10**8)
    )
    for _ in range(2000):
        group.clock.step()
        sent = sum(actor.gauges[Gauge.ITEMS] for actor in group.rows.actors)
        received = group.rows.gauges[Gauge.ITEMS]
        stream = group.stream
        reserved = sum(map(len, stream.reserved))
        assert 0 <= sent - received <= reserved + sum(map(len, stream.sent))
    assert received > 50


def test_unrolls_of_other_machines_queue_for_the_learners_link():
    """Three other machines could make three unrolls a second; the link takes one."""
    (group,) = start_groups(
        scenario(
            unroll_s=(1.0,) * 4,
            version_s=0.1,
            num_nodes=4,
            unroll_bytes=10**6,
            network=NetworkModel(1e6, 0.0),
        )
    )
    while group.clock.elapsed_s() < 100:
        assert group.clock.step()
    others = [group.rows.actors[index].gauges[Gauge.ITEMS] for index in (1, 2, 3)]
    assert sum(others) == pytest.approx(100, abs=5)
    assert max(others) - min(others) <= 2, "one machine was preferred"
    assert group.cluster.network.into[0].busy_ns == pytest.approx(100e9, rel=0.05)


def test_a_full_link_is_called_communication():
    found = run(
        unroll_s=(1.0,) * 4,
        version_s=0.1,
        num_nodes=4,
        unroll_bytes=10**6,
        network=NetworkModel(1e6, 0.0),
    )
    assert found.bottleneck == "communication"


def test_weights_cross_once_per_machine_and_not_once_per_actor():
    (group,) = start_groups(
        scenario(unroll_s=(1.0,) * 6, num_nodes=3, policy_bytes=1000, num_versions=5)
    )
    while group.learner.version < 5:
        group.clock.step()
    took_ns = round(1000 / 1.25e9 * 1e9)
    assert group.cluster.network.out[0].busy_ns == 2 * 5 * took_ns, (
        "versions 0 to 4, to two machines"
    )


def test_a_grant_does_not_overtake_the_policy_it_was_given_under():
    """Weights take 0.5 s to the other machine. Its actor must not begin with the old ones."""
    found = run(
        unroll_s=(1.0, 1.0),
        version_s=2.0,
        num_nodes=2,
        policy_bytes=250_000,
        network=NetworkModel(1e6, 0.0),
    )
    assert found.lag_versions == 1
    assert found.discarded == 0


def test_an_actor_that_is_late_hands_over_what_it_has():
    """The second actor needs ten times as long: it is hurried, and nothing is discarded."""
    slow = scenario(unroll_s=(0.01, 0.1), version_s=0.01, per_version=2)
    slices = tuple(dataclasses.replace(pace, num_slices=20) for pace in slow.paces)
    (group,) = start_groups(dataclasses.replace(slow, paces=slices))
    while group.learner.version < 20:
        assert group.clock.step()
    assert group.buffer.lag.summary()["max"] <= 1
    assert group.buffer.discarded == 0
    late = group.rows.actors[1].gauges
    assert 0 < late[Gauge.STEPS] < STEPS * late[Gauge.ITEMS]


def test_two_simulations_of_one_scenario_are_the_same():
    one, other = (
        dataclasses.asdict(run(unroll_s=(0.7, 1.1, 0.9), version_s=1.3, cores_per_node=2))
        for _ in range(2)
    )
    one.pop("wall_s"), other.pop("wall_s")
    assert one == other
