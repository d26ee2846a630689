"""Several groups on one clock, against schedules worked out by hand."""

import dataclasses

import pytest

from tests.unit.virtual.scenarios import STEPS, pace, run, scenario
from tests.unit.virtual.test_sizes import PPO, profile, size
from tianji.virtual.clock import NetworkModel
from tianji.virtual.groups.combining import Combining
from tianji.virtual.simulate import simulate, start_groups
from tianji.virtual.sizes import scenario_of, simulate_size

MEETS = Combining(update_wait_s=0.5, has_meetings=True)


def test_groups_of_other_machines_add_up():
    alone = run(version_s=2.0, num_updates=4)
    four = run(version_s=2.0, num_updates=4, num_groups=4)
    assert four.produced == pytest.approx(4 * alone.produced)
    assert (alone.busy_share["combining"], four.bytes_per_s) == (0, {"items": 0, "policies": 0})


def test_learners_wait_for_each_others_gradients():
    """Four updates of half a second, each with half a second for the ring."""
    found = run(version_s=2.0, num_updates=4, num_groups=4, combining=MEETS)
    assert found.produced == pytest.approx(4 * 2 * STEPS / (2 + 4 * 0.5))
    assert found.busy_share["learner"] == pytest.approx(0.5)
    assert found.busy_share["combining"] == pytest.approx(0.5)
    assert found.idle_share["learner"] == pytest.approx(0.0)
    assert found.bottleneck == "communication"


def test_a_version_begins_when_all_have_met():
    waits = Combining(version_wait_s=1.0, has_meetings=True)
    found = run(version_s=2.0, num_groups=2, combining=waits)
    assert found.received == pytest.approx(2 * 2 * STEPS / 3)


def test_the_slowest_group_sets_the_pace_of_all():
    """Two groups on one machine; the actors of one take 4 s for an unroll, those of the other 1."""
    both = scenario(num_groups=2, groups_per_node=2, version_s=0.5, combining=MEETS)
    groups = start_groups(both)
    slow = (pace(4.0), pace(4.0))
    for actor, its in zip(groups[1].cluster.actors, slow, strict=True):
        actor._job._slice = its.slice()
    while groups[0].clock.elapsed_s() < 100:
        assert groups[0].clock.step()
    assert abs(groups[0].learner.version - groups[1].learner.version) <= 1
    assert groups[0].learner.version == pytest.approx(100 / 4, abs=2)


def test_without_meetings_nobody_waits_for_a_slow_group():
    both = scenario(num_groups=2, groups_per_node=2, version_s=0.5)
    groups = start_groups(both)
    for actor in groups[1].cluster.actors:
        actor._job._slice = pace(4.0).slice()
    while groups[0].clock.elapsed_s() < 100:
        assert groups[0].clock.step()
    assert groups[0].learner.version == pytest.approx(100, abs=2)
    assert groups[1].learner.version == pytest.approx(25, abs=2)


def test_groups_with_cores_of_their_own_are_as_fast_as_one():
    one, three = (
        run(unroll_s=(2.0, 2.0), version_s=3.0, cores_per_node=3, num_groups=n, groups_per_node=n)
        for n in (1, 3)
    )
    assert three.received == pytest.approx(3 * one.received)
    assert three.busy_share["cores"] == pytest.approx(one.busy_share["cores"])


def test_groups_that_share_cores_share_the_rate():
    """Each version of each group is 6 s of work; two cores do two in 6 s."""
    values = {"unroll_s": (2.0, 2.0), "version_s": 2.0, "cores_per_node": 2, "num_versions": 40}
    crowded = run(**values, num_groups=4, groups_per_node=4, shares_cores=True)
    assert crowded.received == pytest.approx(2 * 2 * STEPS / 6, rel=0.03)
    assert crowded.bottleneck == "processors"


def test_groups_load_the_memory_of_one_machine():
    """Work under load takes twice as long; the load comes from the other group."""
    strained = dataclasses.replace(
        pace(1.0), unroll=dataclasses.replace(pace(1.0).unroll, strain=2.0)
    )
    made = scenario(unroll_s=(1.0,), version_s=0.001, cores_per_node=1, lag=1)
    made = dataclasses.replace(made, paces=(strained,))
    alone = simulate(made)
    both = simulate(dataclasses.replace(made, num_groups=2, groups_per_node=2))
    assert both.received < 0.6 * 2 * alone.received


def test_a_size_says_what_its_groups_exchange():
    network = NetworkModel(1e8, 1e-4)
    near = scenario_of(PPO, profile(), size(num_groups=2, groups_per_node=2, network=network))
    far = scenario_of(PPO, profile(), size(num_groups=2, network=network))
    assert (near.num_hosts, far.num_hosts) == (1, 2)
    assert (near.together.is_on_hosts, far.together.is_on_hosts) == (False, True)
    assert far.combining.update_wait_s == network.all_reduce_s(1000, 2)
    assert scenario_of(PPO, profile(), size()).together is None


def test_groups_mix_as_often_as_the_run_that_is_simulated():
    groups = size(num_groups=4, groups_per_node=4, combine="average")
    often, rarely = (
        scenario_of(PPO.model_copy(update={"combine_every": every}), profile(), groups)
        for every in (1, 8)
    )
    assert often.combining.mix_s == pytest.approx(8 * rarely.combining.mix_s)


def test_cores_of_a_machine_are_divided_among_its_groups():
    own = scenario_of(PPO, profile(), size(num_groups=4, groups_per_node=4))
    assert (own.shares_cores, own.machines.cores_per_node, own.cores_per_host) == (False, 4, 16)
    crowded = scenario_of(PPO, profile(), size(num_groups=8, groups_per_node=8))
    assert (crowded.shares_cores, crowded.machines.cores_per_node) == (True, 16)
    assert crowded.is_crowded
    assert (own.together.is_crowded, crowded.together.is_crowded) == (False, True)


@pytest.mark.parametrize("combine", ["average", "gossip", "gradients"])
def test_of_equal_machines_one_is_simulated(combine):
    large = size(num_groups=256, combine=combine)
    assert len(start_groups(scenario_of(PPO, profile(), large))) == 1
    found = simulate_size(PPO, profile(), large)
    assert found.received > 50 * simulate_size(PPO, profile(), size()).received
    assert (found.mix_period_s is None) == (combine == "gradients")
    crossing = "gradients" if combine == "gradients" else "parameters"
    assert found.bytes_per_s[crossing] > 0


def test_a_group_on_several_machines_sends_items_and_policies():
    found = simulate_size(PPO, profile(), size(num_nodes=2, num_versions=20))
    versions_per_s = (
        found.trained / scenario_of(PPO, profile(), size(num_nodes=2)).trained_steps_per_version
    )
    assert found.bytes_per_s["items"] == pytest.approx(found.received / 2 / 40 * 4000, rel=0.1)
    assert found.bytes_per_s["policies"] == pytest.approx(1000 * versions_per_s, rel=0.1)


def test_gradients_cross_between_the_hosts_of_learners_alone():
    """Hosts with actors have no part in the ring."""
    small = scenario_of(PPO, profile(), size(num_groups=2, combine="gradients", num_versions=20))
    wide = dataclasses.replace(
        small, machines=dataclasses.replace(small.machines, num_nodes=2), num_groups=2
    )
    assert (small.num_hosts, wide.num_hosts) == (2, 4)
    one, other = (simulate(made).bytes_per_s["gradients"] for made in (small, wide))
    updates = small.learner.num_updates * small.updates_per_tick
    for made, found in ((small, one), (wide, other)):
        per_version = found / (simulate(made).trained / 2 / made.trained_steps_per_version)
        assert per_version == pytest.approx(2 * updates * 1000, rel=0.05)


def test_a_link_that_is_busy_with_mixing_limits_nobody():
    slow = NetworkModel(1e5, 1e-4)
    found = simulate_size(
        PPO, profile(), size(num_groups=64, combine="average", network=slow, num_versions=20)
    )
    assert found.busy_share["network"] > 0.9
    assert found.bottleneck == simulate_size(PPO, profile(), size()).bottleneck != "communication"
